"""Measurements: each prints ratios of things run side by side in one go, never a verdict. Run them with `make bench`."""
