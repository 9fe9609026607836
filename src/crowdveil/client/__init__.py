"""A Python client for a study's website: ask the crowd, or take part as a voter who trusts nobody."""
