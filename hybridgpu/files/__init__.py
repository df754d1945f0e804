"""Text to records with places, and back: YAML trees, Slurm's line language, writing a tree of files."""
