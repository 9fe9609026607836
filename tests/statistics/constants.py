"""The choice of what steers Fisher scoring, on crowds simulated from a public study.

python tests/statistics/constants.py plan MECHANISM UNITS_TIMES_EPSILON POPULATIONS [NAME=VALUE ...]
python tests/statistics/constants.py sizes MECHANISM POPULATIONS CLIP ...

``plan`` tells what stated probabilities lose against the true shares (divergence, in thousandths), with the constants
of ``score_plan`` as they are, and then with each of the others given, as the difference and its standard error.
``sizes`` tells how much larger than the pooled probit an unshrunk estimate comes out without noise, by where the first
step clips means (c1.5: in units of an axis) or the second step scores (d3: in deviations): what is corrected, on
average, and what is left to doubt.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from unittest import mock

import numpy as np
from populations import release
from varied import LENGTHS, varied_population

from crowdveil.estimation import guess, scoring_step
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms import score_plan
from crowdveil.study.bundled import load_study

_STUDY = load_study("moral-machine")
_VOTERS = (300, 1500)
_LARGEST_EPSILON = 50


def losses(mechanism: str, loud: float, populations: int, **constants: float) -> np.ndarray:
    """Return what releases of each population lose, two each, with other constants of the plan."""
    rng, lost = np.random.default_rng(7), []
    for number in range(populations):
        population, voters = varied_population(_STUDY, rng), int(rng.choice(_VOTERS))
        crowd = population.crowd(voters, rng)
        units = voters if mechanism == "voter-score" else crowd.records
        epsilon = Epsilon(min(max(round(loud / units, 4), 0.001), _LARGEST_EPSILON))
        with mock.patch.dict(vars(score_plan), constants):
            made = [release(mechanism, crowd, epsilon, 1000 * number + draw) for draw in range(2)]
        lost.append(np.mean([population.loss(one) for one in made]))
    return np.array(lost)


def plan(mechanism: str, loud: str, populations: str, *others: str) -> None:
    """Print what is lost, and how that changes with each of the other constants."""
    usual = losses(mechanism, float(loud), int(populations))
    print(f"| {mechanism} | {loud} | as it is | {usual.mean():.2f} | |", flush=True)
    for other in others:
        name, value = other.split("=")
        more = losses(mechanism, float(loud), int(populations), **{name: float(value)}) - usual
        error = more.std() / np.sqrt(len(more))
        print(f"| {mechanism} | {loud} | {other} | {more.mean():+.2f} | {error:.2f} |", flush=True)


def sizes(mechanism: str, populations: str, *clips: str) -> None:
    """Print the mean and the deviation of the relative size, over populations whose dilemmas the generator drew."""
    for clip in clips:
        kind, value = clip[0], float(clip[1:])
        first, loud = (value, 1e12) if kind == "c" else (3.0, 0.0)
        rng, ratios = np.random.default_rng(3), []
        with (
            mock.patch.multiple(score_plan, _LOUD=loud, _SQUARES=1e12, _WORTH_ALL=1e12),
            mock.patch.object(score_plan.Plan, "first_clip", lambda self, study, first=first: first),
            mock.patch.object(guess, "clip_in_deviations", lambda *given, value=value: value),
            mock.patch.object(scoring_step, "_INFLATION", 0.0),
            mock.patch.object(guess.ClipEffect, "on_voters", classmethod(lambda cls, clip: cls(0.0, 0.2))),
            mock.patch.object(guess.ClipEffect, "on_records", classmethod(lambda cls, clip: cls(0.0, 0.2))),
        ):
            for number in range(int(populations)):
                population = varied_population(_STUDY, rng, LENGTHS[number % len(LENGTHS)])
                population = replace(population, asked=np.ones_like(population.asked))
                made = release(mechanism, population.crowd(4000, rng), Epsilon(_LARGEST_EPSILON), 1)
                assert made.unknown is not None
                ratios.append(made.unknown.center @ population.value / (population.value @ population.value))
        print(f"| {mechanism} | {clip} | {np.mean(ratios):.3f} | {np.std(ratios):.3f} |", flush=True)


if __name__ == "__main__":
    {"plan": plan, "sizes": sizes}[sys.argv[1]](*sys.argv[2:])
