"""A simulated NVIDIA driver: a libnvidia-ml.so.1 of our own over one description of a machine, and its controls."""
