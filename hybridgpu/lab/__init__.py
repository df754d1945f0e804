"""The ports in memory, for tests and demonstrations: no rules of its own, only what the real thing is known to do."""
