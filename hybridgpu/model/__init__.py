"""What exists: GPUs, instances, modes, nodes, offers, findings. Immutable, and imports nothing of ours."""
