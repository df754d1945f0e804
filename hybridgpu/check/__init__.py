"""Many files taken as one site, and everything that will go wrong with them."""
