"""Guarantees, the noise that gives them, what has been spent, and attacks on all of it."""
