"""Engines: work on a crowd runs on the cores of this machine, or on a cluster."""
