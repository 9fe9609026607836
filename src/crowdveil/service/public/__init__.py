"""Public pages: what the crowd of a poll prefers, what its voters were promised, and the list of polls."""
