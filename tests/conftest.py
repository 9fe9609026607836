"""What holds for all tests."""

from hypothesis import settings

# How long an example takes depends on the machine and on what else it does; a test says nothing about that.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
