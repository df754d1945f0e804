"""What no single program can find: files of both schedulers, of the nodes and of the disk, held against each other."""
