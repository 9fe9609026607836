"""Exact discrete noise, and its laws."""
