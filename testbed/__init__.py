"""Real programs on a plain Linux box: what the tests hold hybridgpu against. Not part of the installed package."""
