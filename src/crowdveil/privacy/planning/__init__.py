"""How accurate a release will be, before it is made."""
