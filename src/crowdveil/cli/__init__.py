"""The command line: the same verbs as the library, for the terminal."""
