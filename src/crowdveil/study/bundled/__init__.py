"""The bundled studies, and how a study file is found and read."""

from __future__ import annotations

import difflib
import math
import re
from functools import cache
from importlib import resources
from os import PathLike

from crowdveil.errors import CrowdveilError, path_of
from crowdveil.study.features import Feature
from crowdveil.study.plain_data import parse_toml, read_toml
from crowdveil.study.study import Drawing, Study

BUNDLED = ("moral-machine", "kidney", "fairness", "synthetic-10")

MOST_FEATURES = 1000
"""Most features of the paper's synthetic study."""

_SYNTHETIC = re.compile(r"synthetic(?:-(\d{1,4}))?")


def load_study(reference: str | PathLike[str]) -> Study:
    """Load a study by its bundled name (``synthetic-D`` has D features) or from the path of a TOML file."""
    path = path_of(reference, "the study")
    reference = str(reference)
    if synthetic := _SYNTHETIC.fullmatch(reference):
        return synthetic_study(int(synthetic[1] or 10))
    if reference in BUNDLED:
        return _bundled(reference)
    if not path.is_file():
        close = difflib.get_close_matches(reference, BUNDLED, n=1)
        hint = f"did you mean {close[0]}? Give one of" if close else "give one of"
        raise CrowdveilError(
            f"there is no study {reference!r}: {hint} {', '.join(BUNDLED)}, "
            "synthetic-D for D features, or the path of a study file (TOML)"
        )
    return Study.from_dict(read_toml(path, "study file", "write a name, [drawing] and [[features]] into it"))


def find_study(given: str | PathLike[str] | Study) -> Study:
    """Return a study as it is, or load it as ``load_study`` does."""
    return given if isinstance(given, Study) else load_study(given)


@cache
def _bundled(name: str) -> Study:
    """Read a bundled study; the result is cached, since it never changes."""
    text = resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return Study.from_dict(parse_toml(text))


def synthetic_study(features: int, dilemmas: int = 50) -> Study:
    """Build the paper's synthetic study (Section 5.1): every feature of an alternative is standard normal.

    A normal variable has no bound, but a study needs one: |x| <= 8 cuts off less than 1.3e-15. Records are kept up to
    an l2 norm of sqrt(2)(sqrt(d) + 2.5), which fewer than one in a thousand exceeds.
    """
    if not 1 <= features <= MOST_FEATURES:
        raise CrowdveilError(f"a synthetic study has 1 to {MOST_FEATURES} features, got {features}")
    return Study(
        name=f"synthetic-{features}",
        title=f"Synthetic study with {features} features",
        question="Which alternative do you prefer?",
        drawing=Drawing("gaussian", dilemmas),
        features=tuple(Feature(f"x{k}", f"feature {k}", -8.0, 8.0) for k in range(1, features + 1)),
        norm_bound=2.0,
        record_norm=round(math.sqrt(2) * (math.sqrt(features) + 2.5), 3),
    )


def is_synthetic(study: Study) -> bool:
    """Whether this is the paper's synthetic study; others may draw normal values, too."""
    return study.dimension <= MOST_FEATURES and study == synthetic_study(study.dimension, study.drawing.dilemmas)
