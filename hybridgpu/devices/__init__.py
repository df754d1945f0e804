"""This machine's cards: what the driver says of them, and what is bound to that. Knows no scheduler, no inventory."""
