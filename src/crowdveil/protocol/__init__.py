"""Everything that travels between a voter's device and the server, defined once for both."""
