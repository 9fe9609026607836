"""The version of crowdveil, as recorded in release files."""

from importlib.metadata import version

VERSION = version("crowdveil")
