"""The store of polls, reports, ballots, releases and hosts: SQLite in a file, or PostgreSQL."""
