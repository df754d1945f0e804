"""Measurements: each prints ratios of things run side by side in one run, never a verdict; see `make bench`."""
