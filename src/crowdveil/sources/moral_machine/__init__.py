"""Imports the public Moral Machine layout in bounded memory: rows become small units, units go by way of the disk."""
