"""Preferences of groups of voters: whose members are secret, or are public, and what differs between them."""
