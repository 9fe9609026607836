"""Pages for people: a release shown and explained, in one self-contained file."""
