"""Real Slurm, one root file system a release, for the tests."""
