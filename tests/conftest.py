"""What holds for all tests."""

import gc
import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, lru_cache

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
    gc.set_threshold(50_000)  # Looking for garbage every 700 objects takes time.
    gc.enable()


@pytest.fixture(scope="module")
def few_crowds() -> Iterator[None]:
    """Posteriors of few draws: for modules that do not ask how good a release's probabilities are.

    Those of the mechanisms' own tests, of the estimation and of the statistics are as fine as everybody's.
    """
    with few_draws():
        yield


@pytest.fixture
def few_crowds_here() -> Iterator[None]:
    """The same for a single test."""
    with few_draws():
        yield


@pytest.fixture
def few_crowds_unless_slow(request: pytest.FixtureRequest) -> Iterator[None]:
    """The same for a test whose long sweep draws as many as everybody."""
    with nullcontext() if request.node.get_closest_marker("slow") else few_draws():
        yield


FEW_DRAWS = {
    "clipped_ballots": {
        "_VOTERS": 2000,
        "_RECORDS": 2600,
        "_RECORDS_OF_FEW": 4000,
        "_SHORT_WAYS": 1600,
        "_LONG_BALLOTS": 40,
    },
    "clipped_means": {"_DRAWN": 40},
    "likely_crowds": {"_CROWDS": 120, "_ENOUGH": 1.0},
    "likely_preferences": {"_FIRST": 400, "_LATER": 300, "_TAIL": 50, "_ENOUGH": 1},
}
"""How much is drawn, by the module of the estimation and the name there."""


@contextmanager
def few_draws() -> Iterator[None]:
    """Draw little, until the end of the context."""
    with pytest.MonkeyPatch.context() as patch:
        for module, numbers in FEW_DRAWS.items():
            for name, number in numbers.items():
                patch.setattr(f"crowdveil.estimation.{module}.{name}", number)
        patch.setattr("crowdveil.privacy.mechanisms.one_bit.clipped_ballots", _few_ballots())
        yield


@cache
def _few_ballots() -> Callable[..., object]:
    """Ballots that are kept for all who draw little, apart from those of everybody else."""
    return lru_cache(importlib.import_module("crowdveil.estimation.clipped_ballots").clipped_ballots.__wrapped__)
