"""The version of veil, as it stands in release files."""

from importlib.metadata import version

VERSION = version("veil")
