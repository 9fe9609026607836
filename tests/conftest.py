"""What holds for all tests."""

import gc
import os
from collections.abc import Iterator

import pytest
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


# What is imported stays: to look through it for garbage, again and again, is in vain.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module")
def few_crowds() -> Iterator[None]:
    """One-bit's posteriors of few draws: for modules that do not ask how good its probabilities are.

    Those of its own tests, of the estimation and of the statistics are as fine as everybody's.
    """
    with pytest.MonkeyPatch.context() as patch:
        _draw_few(patch)
        yield


@pytest.fixture
def few_crowds_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for a single test."""
    _draw_few(monkeypatch)


def _draw_few(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("crowdveil.estimation.likely_crowds._CROWDS", 120)
    patch.setattr("crowdveil.estimation.likely_crowds._ENOUGH", 1.0)
    patch.setattr("crowdveil.estimation.clipped_ballots._VOTERS", 2000)
