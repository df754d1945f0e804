"""A real Kubernetes API server, built from its Go module, for the tests."""
