"""The host's pages: who took part, what was released, and everything that a host may do."""
