"""Layers between the network and the application: limits, headers and logs."""
