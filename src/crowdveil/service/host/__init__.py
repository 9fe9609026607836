"""The host's pages: to make polls, to see who took part, and to make releases."""
