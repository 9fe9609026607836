"""What holds for all tests."""

from hypothesis import settings

# How long an example takes depends on the machine and on what else it does; a test says nothing about that. Every run
# tries other examples; the long sweeps try many.
settings.register_profile("any machine", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=300)
settings.load_profile("any machine")
