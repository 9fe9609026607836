"""A crowd's records as columns: in memory, on disk, and parts of them."""
