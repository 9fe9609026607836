"""How long it takes to fit one voter in the l1 ball: ours beside what else one could use, on the same voters.

Run: python benchmarks/fit.py

Times are processor time per voter, on one core. Every solver's gap is evaluated at its own answer, scaled into the ball
if it is outside: an upper bound on the log-likelihood that it misses. cvxpy (optional) approximates ln Phi.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # processor time of threads that wait would count against the others

import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr

from crowdveil.arrays import FloatArray
from crowdveil.ballots.ballots import Ballots, concatenate
from crowdveil.estimation.l1_ball import GAP_LIMIT, fit_in_ball, project_onto_l1_ball
from crowdveil.estimation.probit import slopes_and_weights
from crowdveil.sources.simulated import simulated_batches, synthetic_crowd
from crowdveil.study.bundled import load_study

Solver = Callable[[FloatArray], FloatArray]

NORM_BOUND = 2.0


def moral_machine(voters: int) -> Ballots:
    study = load_study("moral-machine")
    return concatenate(study, list(simulated_batches(study, voters, np.random.default_rng(0))))


def synthetic(voters: int, records: int = 50, features: int = 10) -> Ballots:
    return synthetic_crowd(voters, records, features, np.random.default_rng(0)).ballots


def by_voter(ballots: Ballots, voters: int) -> FloatArray:
    """The records of the first voters, voters x records x features."""
    shape = (voters, ballots.records // ballots.voters, ballots.differences.shape[1])
    return ballots.differences[: shape[0] * shape[1]].reshape(shape).astype(np.float64)


def log_likelihood(records: FloatArray, beta: FloatArray) -> float:
    return float(log_ndtr(records @ beta).sum())


def gradient(records: FloatArray, beta: FloatArray) -> FloatArray:
    return np.asarray(slopes_and_weights(records @ beta)[0] @ records, np.float64)


def batched_fista(records: FloatArray) -> FloatArray:
    """Accelerated projected gradient, all voters at once in NumPy, each until its gap is below the limit."""
    lipschitz = np.linalg.norm(records, ord=2, axis=(1, 2)) ** 2
    answers = np.zeros((records.shape[0], records.shape[2]))
    going = np.arange(records.shape[0])
    beta, ahead, momentum = answers.copy(), answers.copy(), np.ones(records.shape[0])
    while going.size:
        t = (records @ ahead[:, :, None])[:, :, 0]
        slope = ((np.exp(-0.5 * t * t - log_ndtr(t)) / np.sqrt(2 * np.pi))[:, None, :] @ records)[:, 0, :]
        done = NORM_BOUND * np.abs(slope).max(axis=1) - (slope * ahead).sum(axis=1) <= GAP_LIMIT
        done &= np.abs(ahead).sum(axis=1) <= NORM_BOUND * (1 + 1e-9)
        answers[going[done]] = ahead[done]
        new = project_onto_l1_ball(ahead + slope / lipschitz[:, None], NORM_BOUND)
        restart = ((ahead - new) * (new - beta)).sum(axis=1) > 0
        momentum[restart] = 1.0
        grown = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
        ahead = new + ((momentum - 1) / grown)[:, None] * (new - beta)
        # An extrapolation can leave the ball; where it does, or where the way turned back, look from the point itself.
        outside = restart | (np.abs(ahead).sum(axis=1) > NORM_BOUND)
        ahead[outside] = new[outside]
        beta, momentum = new, grown
        if done.any():
            left = ~done
            going, records, lipschitz = going[left], records[left], lipschitz[left]
            beta, ahead, momentum = beta[left], ahead[left], momentum[left]
    return answers


def slsqp(records: FloatArray) -> FloatArray:
    """What a user would write: SciPy on the positive and negative parts, gradients given.

    At about the same certified gap: the loosest tolerance, by powers of ten, at which hardly a voter's gap is above our
    limit. Of the Moral Machine's voters 1 % are; at 1e-12 it is a fifth.
    """
    return np.array([_slsqp_one(one) for one in records])


def _slsqp_one(records: FloatArray) -> FloatArray:
    features = records.shape[1]
    both = np.hstack([records, -records])
    found = minimize(
        lambda u: (-log_likelihood(both, u), -gradient(both, u)),
        np.zeros(2 * features),
        jac=True,
        method="SLSQP",
        bounds=[(0, None)] * (2 * features),
        constraints={"type": "ineq", "fun": lambda u: NORM_BOUND - u.sum(), "jac": lambda u: -np.ones_like(u)},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    return np.asarray(found.x[:features] - found.x[features:], dtype=np.float64)


def clarabel(records: FloatArray) -> FloatArray:
    import cvxpy

    answers = []
    for one in records:
        beta = cvxpy.Variable(one.shape[1])
        objective = cvxpy.Maximize(cvxpy.sum(cvxpy.log_normcdf(one @ beta)))
        cvxpy.Problem(objective, [cvxpy.norm1(beta) <= NORM_BOUND]).solve(solver="CLARABEL")
        answers.append(beta.value)
    return np.array(answers)


def gap_and_likelihood(records: FloatArray, beta: FloatArray) -> tuple[float, float]:
    beta = beta * min(1.0, NORM_BOUND / max(np.abs(beta).sum(), 1e-300))
    g = gradient(records, beta)
    return float(NORM_BOUND * np.abs(g).max() - g @ beta), log_likelihood(records, beta)


def microseconds_of_ours(ballots: Ballots, repeats: int = 7) -> float:
    """Processor time per voter, the best of several runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        fit_in_ball(ballots.differences, ballots.offsets, NORM_BOUND, threads=1)
        times.append(time.process_time() - start)
    return min(times) / ballots.voters * 1e6


def compare(name: str, ballots: Ballots) -> None:
    fit = fit_in_ball(ballots.differences, ballots.offsets, NORM_BOUND, threads=1)
    ours = microseconds_of_ours(ballots)
    print(f"\n{name}, B = {NORM_BOUND:g}")
    print(f"{'':24} {'us/voter':>10} {'ratio':>7} {'median gap':>11} {'largest gap':>12} {'voters':>7}")
    row = "{:24} {:>10.1f} {:>7.0f} {:>11.1e} {:>12.1e} {:>7}"
    print(row.format("ours", ours, 1, np.median(fit.gaps), fit.gaps.max(), ballots.voters))
    solvers: list[tuple[str, Solver, int]] = [
        ("NumPy, batched FISTA", batched_fista, 2000),
        ("SciPy, SLSQP", slsqp, 300),
    ]
    if find_spec("cvxpy"):
        solvers.append(("cvxpy, Clarabel", clarabel, 30))
    for solver_name, solver, voters in solvers:
        records = by_voter(ballots, voters)
        solver(records[:2])
        start = time.process_time()
        answers = solver(records)
        theirs = (time.process_time() - start) / voters * 1e6
        gaps = [check(*pair) for pair in zip(records, answers, fit.values, fit.gaps, strict=False)]
        print(row.format(solver_name, theirs, theirs / ours, np.median(gaps), max(gaps), voters))


def check(records: FloatArray, theirs: FloatArray, ours: FloatArray, our_gap: float) -> float:
    """Both certificates must hold: no answer is better than the other one plus its gap. Returns their gap."""
    gap, likelihood = gap_and_likelihood(records, theirs)
    our_likelihood = log_likelihood(records, ours)
    if not (our_likelihood <= likelihood + gap + 1e-9 and likelihood <= our_likelihood + our_gap + 1e-9):
        raise AssertionError(f"log-likelihoods {our_likelihood} (gap {our_gap}) and {likelihood} (gap {gap}) disagree")
    return gap


def growth() -> None:
    print(f"\nGrowth, ours{'':>18} {'us/voter':>9} {'us/voter/record':>16} {'iterations':>11}")
    for records, features in ((5, 10), (13, 10), (50, 10), (200, 10), (1000, 10), (50, 2), (50, 5), (50, 23), (50, 60)):
        ballots = synthetic(max(20, 100_000 // (records * features)), records, features)
        fit = fit_in_ball(ballots.differences, ballots.offsets, NORM_BOUND, threads=1)
        each = microseconds_of_ours(ballots)
        shape = f"{records} records, {features} features"
        print(f"{shape:30} {each:>9.1f} {each / records:>16.3f} {fit.iterations.mean():>11.1f}")


def scale() -> None:
    cores = os.cpu_count() or 1
    print(
        f"\nMoral Machine voters{'':>4} {'1 thread, s':>12} {f'{cores} threads, s':>13} {'us/voter':>9}    (clock time)"
    )
    everyone = moral_machine(200_000)
    for voters in (1, 1_000, 10_000, 200_000):
        ballots = everyone[:voters]
        seconds = []
        for threads in (1, cores):
            start = time.perf_counter()
            fit_in_ball(ballots.differences, ballots.offsets, NORM_BOUND, threads=threads)
            seconds.append(time.perf_counter() - start)
        print(f"{voters:>24} {seconds[0]:>12.4f} {seconds[1]:>13.4f} {seconds[1] / voters * 1e6:>9.2f}")


if __name__ == "__main__":
    compare("Moral Machine shape: 13 records, 23 features, small integers", moral_machine(20_000))
    compare("The paper's synthetic shape: 50 records, 10 features, Gaussian", synthetic(5_000))
    growth()
    scale()
