"""What holds for all tests."""

import os

from hypothesis import settings

# Tests run side by side, a process a core: threads of one that wait for each other burn what the others could use, up
# to half of all processor time. Before NumPy is loaded, and for every process that a test starts.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# What a command prints is wrapped at the width of the terminal, and no test depends on the caller's.
os.environ["COLUMNS"] = "100"

# How long an example takes depends on the machine and on what else it does; a test says nothing about that. Every run
# tries other examples; the long sweeps try many.
settings.register_profile("any machine", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=300)
settings.load_profile("any machine")
