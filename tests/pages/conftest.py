from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import Guarantee, paradigm
from crowdveil.privacy.noise.distribution import LaplaceSum
from crowdveil.releases import Release
from crowdveil.study.bundled import load_study

MakeRelease = Callable[..., Release]


@pytest.fixture(scope="session")
def make_guarantee() -> Callable[..., Guarantee]:
    def make(name: str = "vlcp", epsilon: str = "1", smallest: str | None = None, voters: int = 2097) -> Guarantee:
        return Guarantee(paradigm(name), Epsilon(epsilon), Epsilon(smallest or epsilon), 2.0, voters)

    return make


@pytest.fixture(scope="session")
def make_release(make_guarantee: Callable[..., Guarantee]) -> MakeRelease:
    """Make a release by hand; its values run from -0.25 to 0.3, and by default its error bars are 0.06."""

    def make(paradigm_name: str = "vlcp", epsilon: str = "1", **changes: Any) -> Release:
        study = changes.pop("study", None) or load_study("moral-machine")
        smallest = changes.pop("smallest", None)
        fields: dict[str, Any] = {
            "study": study,
            "parameter": np.linspace(-0.25, 0.3, study.dimension),
            "guarantee": make_guarantee(paradigm_name, epsilon, smallest),
            "mechanism": "algorithm-1",
            # A Laplace variable of scale b exceeds b ln 20 with probability 5 %.
            "noise": LaplaceSum((0.06 / np.log(20).item(),), (1,)),
            "sampler": "exact discrete Laplace (OpenDP)",
            "exact": True,
            "facts": {},
            "ledger": {"id": "0f4b3f2f", "entry": 7},
            "version": "0.1.0",
        }
        return Release(**{**fields, **changes})

    return make
