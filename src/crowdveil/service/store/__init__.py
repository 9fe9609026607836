"""Where polls, reports, ballots, releases and hosts are kept: SQLite in a file, or PostgreSQL."""
