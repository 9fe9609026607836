"""The command line: the same verbs as the library, for the terminal."""

from veil.cli.app import main

__all__ = ["main"]
