"""The command line: the same verbs as the library, for the terminal."""

from crowdveil.cli.app import main

__all__ = ["main"]
