"""Dilemmas that everybody may know: those of a file without its choices, or those of the study's own generator.

Mechanisms that look at the dilemmas of secret records only through noise take what they expect of them from the study's
generator, and doubt it. Whoever knows which dilemmas were asked can say so, before any record is looked at: then
nothing about them is in doubt, and nothing is spent on them.
"""

from __future__ import annotations

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.ballots.ballots import BallotSource, census
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.design import SAMPLE, PublicDilemmas
from crowdveil.privacy.mechanisms.randomised_response import oriented
from crowdveil.study.study import Study

FEWEST = 100
"""Fewer dilemmas tell too little of the law that others were drawn by."""
GENERATOR = "study"
"""In place of a file: the study's own generator drew the dilemmas."""


def shown_dilemmas(source: BallotSource) -> FloatArray:
    """Return the dilemmas of ballots, without their choices: some, if they are many."""
    shown: list[FloatArray] = []
    kept = 0
    for ballots in source.batches():
        shown.append(oriented(ballots)[0][: SAMPLE - kept].astype(np.float64))
        kept += len(shown[-1])
        if kept == SAMPLE:
            break
    return np.concatenate(shown)


def public_dilemmas(given: BallotSource | str, study: Study, dataset: str) -> PublicDilemmas:
    """Check a design that somebody gives for a data set of a study (named by its fingerprint)."""
    if isinstance(given, str):
        if given != GENERATOR:
            raise CrowdveilError(
                f"the design is {given!r}: give ballots whose dilemmas are public, or {GENERATOR!r} if the study's own "
                "generator drew them"
            )
        return PublicDilemmas(None, "the study's own generator drew the dilemmas, as whoever released this says")
    if given.study.feature_names != study.feature_names:
        raise CrowdveilError(
            f"the design is of study {given.study.name}, the ballots of {study.name}: give dilemmas of the same study"
        )
    counted = census(given)
    if counted.fingerprint == dataset:
        raise CrowdveilError(
            "the design is the ballots themselves, whose dilemmas are protected: give some that everybody may know, "
            "or, if these are public and only the choices are secret, release with --paradigm alcp"
        )
    if counted.records < FEWEST:
        raise CrowdveilError(f"the design has {counted.records} dilemmas: give at least {FEWEST}")
    differences = shown_dilemmas(given)
    if not (differences != 0).any():
        raise CrowdveilError("the design has no dilemma in which anything differs: give those that were asked")
    words = f"{len(differences)} public dilemmas were given in place of the study's own"
    return PublicDilemmas(differences, words)
