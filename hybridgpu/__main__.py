"""`python -m hybridgpu`."""

from hybridgpu.cli import main

if __name__ == "__main__":
    main()
