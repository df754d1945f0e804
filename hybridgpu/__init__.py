"""One inventory of GPUs and MIG instances from which Slurm and Kubernetes are configured, and kept in agreement."""

__version__ = "0.1.0"
