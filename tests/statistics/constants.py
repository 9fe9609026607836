"""The choice of what steers Fisher scoring, on crowds simulated from a public study.

python tests/statistics/constants.py plan STUDY MECHANISM UNITS_TIMES_EPSILON POPULATIONS [NAME=VALUE,... ...]
python tests/statistics/constants.py sizes MECHANISM POPULATIONS CLIP ...
python tests/statistics/constants.py errors MECHANISM POPULATIONS LOUDNESS ...
python tests/statistics/constants.py small STUDY VOTERS ANSWERS EPSILON POPULATIONS SIZES ...

``plan`` tells what stated probabilities lose against the true shares (divergence, in thousandths), with the constants
of ``fisher_plan`` as they are, and then with each set of others given, as the difference and its standard error.
``sizes`` tells how much larger than the pooled probit an unshrunk estimate comes out without noise, by where the first
step clips means (c1.5: in units of an axis) or the second step scores (d3: in deviations): what is corrected, on
average, and what is left to doubt. ``errors`` tells what is left of it without noise, as releases correct it, at so
many units times epsilon for each factor: the size against that of the crowd's exact preference along the factors (mean
and deviation), the length of the rest of the error, relative to the preference (root mean square, and the largest), and
the largest part of what certainty allows for in the dilemma that differs along it. ``small`` tells of releases by
voter-score, with margins of these sizes a priori (0.5,1,2), what their probabilities lose, the slope of the true shares
on them, and the mean stated less the share right.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from unittest import mock

import numpy as np
from populations import release
from scipy.special import ndtr
from varied import LENGTHS, varied_population

from crowdveil.decision import stated_margins
from crowdveil.estimation import clipped_means, scoring_step, step_estimate
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.design import public_design
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms import fisher_plan
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.registry import CENTRAL
from crowdveil.privacy.noise.experimental_noise import SilentNoise
from crowdveil.study.bundled import find_study, load_study
from crowdveil.study.study import Study

_STUDY = load_study("moral-machine")
_VOTERS = (300, 1500)
_LARGEST_EPSILON = 50


def losses(mechanism: str, loud: float, populations: int, study: Study = _STUDY, **constants: float) -> np.ndarray:
    """Return what releases of each population lose, two each, with other constants of the plan."""
    rng, lost = np.random.default_rng(7), []
    for number in range(populations):
        population, voters = varied_population(study, rng), int(rng.choice(_VOTERS))
        crowd = population.crowd(voters, rng)
        units = voters if mechanism == "voter-score" else crowd.records
        epsilon = Epsilon(min(max(round(loud / units, 4), 0.001), _LARGEST_EPSILON))
        with mock.patch.dict(vars(fisher_plan), constants):
            made = [release(mechanism, crowd, epsilon, 1000 * number + draw) for draw in range(2)]
        lost.append(np.mean([population.loss(one) for one in made]))
    return np.array(lost)


def plan(study: str, mechanism: str, loud: str, populations: str, *others: str) -> None:
    """Print what is lost, and how that changes with each set of other constants."""
    asked, row = find_study(study), f"| {study} | {mechanism} | {loud} |"
    usual = losses(mechanism, float(loud), int(populations), asked)
    print(f"{row} as it is | {usual.mean():.2f} | |", flush=True)
    for other in others:
        constants = {name: float(value) for name, value in (each.split("=") for each in other.split(","))}
        more = losses(mechanism, float(loud), int(populations), asked, **constants) - usual
        error = more.std() / np.sqrt(len(more))
        print(f"{row} {other} | {more.mean():+.2f} | {error:.2f} |", flush=True)


def sizes(mechanism: str, populations: str, *clips: str) -> None:
    """Print the mean and the deviation of the relative size, over populations whose dilemmas the generator drew."""
    for clip in clips:
        kind, value = clip[0], float(clip[1:])
        first, loud = (value, 1e12) if kind == "c" else (3.0, 0.0)
        rng, ratios = np.random.default_rng(3), []
        with (
            mock.patch.multiple(fisher_plan, _VOTERS_LOUD=loud, _RECORDS_LOUD=loud, _KNOWN_LOUD=loud),
            mock.patch.multiple(fisher_plan, _SQUARES=1e12, _REST=1e12),
            mock.patch.object(fisher_plan.FisherPlan, "first_clip", lambda self, study, first=first: first),
            mock.patch.object(step_estimate, "clip_in_deviations", lambda *given, value=value: value),
            mock.patch.object(scoring_step, "_INFLATION", 0.0),
            mock.patch.object(step_estimate.ClipEffect, "on_voters", classmethod(lambda cls, clip: cls(0.0, 0.2, 0.1))),
            mock.patch.object(
                step_estimate.ClipEffect, "on_records", classmethod(lambda cls, clip: cls(0.0, 0.2, 0.1))
            ),
        ):
            for number in range(int(populations)):
                population = varied_population(_STUDY, rng, LENGTHS[number % len(LENGTHS)])
                population = replace(population, asked=np.ones_like(population.asked))
                made = release(mechanism, population.crowd(4000, rng), Epsilon(_LARGEST_EPSILON), 1)
                assert made.unknown is not None
                ratios.append(made.unknown.center @ population.value / (population.value @ population.value))
        print(f"| {mechanism} | {clip} | {np.mean(ratios):.3f} | {np.std(ratios):.3f} |", flush=True)


def errors(mechanism: str, populations: str, *loudness: str) -> None:
    """Print what remains without noise, over populations whose dilemmas the generator drew."""
    made, settings, design = CENTRAL[mechanism], MechanismSettings(_STUDY, _STUDY.norm_bound), public_design(_STUDY)
    factors = _STUDY.factor_matrix.astype(np.float64)
    for loud in loudness:
        rng, found = np.random.default_rng(11), []
        for _ in range(int(populations)):
            population = varied_population(_STUDY, rng)
            crowd = replace(population, asked=np.ones_like(population.asked)).crowd(2500, rng)
            by_voter = mechanism == "voter-score"
            exact = crowd_preference(crowd, weighting="voters" if by_voter else "choices", directions=factors)
            truth = np.linalg.pinv(design.basis) @ factors @ _STUDY.factor_map @ exact.preference
            units = crowd.voters if by_voter else crowd.records
            epsilon = Epsilon(round(float(loud) * design.directions / units, 6))
            unknown = made.release(made.measure(crowd, settings, epsilon), settings, epsilon, SilentNoise()).unknown
            # Along the design's own axes, whatever the release's are.
            along = unknown.along_factors(np.linalg.pinv(design.basis))
            center = along @ unknown.basis @ unknown.center
            size = center @ truth / (truth @ truth)
            off = center - size * truth
            # Of the dilemma that differs along the error itself: what certainty allows for there.
            bound = unknown.bias_bound(along.T @ off / np.linalg.norm(off))
            found.append((size, np.linalg.norm(off) / np.linalg.norm(truth), np.linalg.norm(off) / bound))
        size, turned, shares = np.array(found).T
        rest = f"{np.sqrt(np.mean(turned**2)):.3f} | {turned.max():.3f} | {shares.max():.2f}"
        print(f"| {mechanism} | {loud} | {size.mean():.3f} | {size.std():.3f} | {rest} |", flush=True)


def small(study: str, voters: str, answers: str, epsilon: str, populations: str, *sizes: str) -> None:
    """Print how stated probabilities fare, over populations of all kinds with ballots of one length."""
    for given in sizes:
        rng, lost, margins, shares = np.random.default_rng(5), [], [], []
        with mock.patch.object(clipped_means, "SIZES", tuple(map(float, given.split(",")))):
            for number in range(int(populations)):
                population = varied_population(load_study(study), rng, (int(answers),))
                made = release("voter-score", population.crowd(int(voters), rng), Epsilon(epsilon), number)
                lost.append(population.loss(made))
                margins.append(stated_margins(made, population.judged[0]))
                shares.append(population.judged[1])
        stated, true = np.concatenate(margins), np.concatenate(shares)
        over = np.mean(ndtr(np.abs(stated)) - np.where(stated > 0, true, 1 - true))
        loss = f"{np.mean(lost):.1f} | {np.std(lost) / np.sqrt(len(lost)):.1f}"
        found = f"{slope_of(true, stated):.3f} | {over:+.4f}"
        print(f"| {study} | {voters} | {answers} | {epsilon} | {given} | {loss} | {found} |", flush=True)


def slope_of(shares: np.ndarray, margins: np.ndarray) -> float:
    """Return the slope of a probit regression of shares on margins, without an intercept."""
    slope = 1.0
    for _ in range(30):
        t = slope * margins
        chance, density = np.clip(ndtr(t), 1e-9, 1 - 1e-9), np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
        weighted = margins * density / (chance * (1 - chance))
        slope += float(weighted @ (shares - chance)) / float((weighted * margins) @ density)
    return slope


if __name__ == "__main__":
    {"plan": plan, "sizes": sizes, "errors": errors, "small": small}[sys.argv[1]](*sys.argv[2:])
