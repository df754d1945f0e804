"""The places where a node's mode shows, besides its cards: each a port and its adapters. Nothing is decided here."""
