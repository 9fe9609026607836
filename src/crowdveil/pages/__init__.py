"""Pages for people: a release shown and explained, in one file that needs nothing beside it."""
