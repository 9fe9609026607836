"""Effects from the reports of a poll, by group if voters were asked about themselves."""
