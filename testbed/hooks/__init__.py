"""Live clusters with hooks installed: each node with a /run, cards, a boot and cgroups of its own."""
