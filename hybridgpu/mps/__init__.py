"""MPS daemons of Slurm's jobs on this node: their folders, holders, processes, compute modes, and what is left of them.

Standard library only, and little of it: hooks start it for each job, as root, from a copy. It imports nothing of ours,
calls no scheduler, and stops nothing that it did not start.
"""
