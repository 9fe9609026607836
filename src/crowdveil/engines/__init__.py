"""Engines: the work on a crowd is done on this machine's cores, or on a cluster."""
