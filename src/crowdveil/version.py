"""The version of crowdveil, as it stands in release files."""

from importlib.metadata import version

VERSION = version("crowdveil")
