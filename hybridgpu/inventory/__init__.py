"""The inventory: the file people write, read with every mistake in it, and compiled to what each node must be."""
