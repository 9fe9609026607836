"""Import the public Moral Machine layout in bounded memory: rows become small entries, which are sorted on disk."""
