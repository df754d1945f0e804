"""What Kubernetes says of a node, and how that is changed. The only code of ours that speaks to an API server."""
