"""The mechanisms, a file each, and their registry."""
