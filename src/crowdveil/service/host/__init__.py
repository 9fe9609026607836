"""The host's part: pages to see who took part and to make releases, and backups of everything."""
