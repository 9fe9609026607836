"""How long one draw of noise takes: numpy's floating-point noise, the exact bulk sampler and OpenDP, side by side.

Run: python benchmarks/noise.py
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.exact_noise import BulkNoise, OpenDPNoise
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.privacy.noise.source import Noise

COLUMNS = 23
EPSILON = 1_000_000
REPEATS = 5


def nanoseconds(draw: Callable[[], object], draws: int) -> float:
    """Return the fastest of a few runs, per draw; the first run, which compiles, is not counted."""
    draw()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter_ns()
        draw()
        times.append(time.perf_counter_ns() - start)
    return min(times) / draws


def exact(source: Noise, scale: int, rows: int) -> float:
    epsilons = Epsilons.same(1, rows)
    return nanoseconds(lambda: source.laplace(scale, epsilons, COLUMNS), rows * COLUMNS)


def floating(scale: int, rows: int) -> float:
    generator = np.random.default_rng(0)
    return nanoseconds(lambda: generator.laplace(0.0, scale, (rows, COLUMNS)), rows * COLUMNS)


def by_scale() -> None:
    print(f"{'scale':>6} {'numpy ns':>9} {'bulk ns':>9} {'OpenDP ns':>10} {'bulk/numpy':>11} {'OpenDP/bulk':>12}")
    for power in (0, 10, 20, 31, 38, 45, 52):
        numpy_time, bulk_time = floating(2**power, 40_000), exact(BulkNoise(), 2**power, 40_000)
        opendp_time = exact(OpenDPNoise(), 2**power, 200)
        print(
            f"  2^{power:<3} {numpy_time:>8.1f} {bulk_time:>9.1f} {opendp_time:>10.0f}"
            f" {bulk_time / numpy_time:>11.2f} {opendp_time / bulk_time:>12.0f}"
        )


def by_count() -> None:
    print(f"\n{'rows x 23, scale 2^31':>22} {'numpy ns':>9} {'bulk ns':>9} {'bulk/numpy':>11}")
    for rows in (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000):
        numpy_time, bulk_time = floating(2**31, rows), exact(BulkNoise(), 2**31, rows)
        print(f"{rows:>22} {numpy_time:>9.1f} {bulk_time:>9.1f} {bulk_time / numpy_time:>11.2f}")


def by_distinct_epsilons() -> None:
    rows = 100_000
    print(f"\n{'distinct epsilons':>22} {'bulk ns':>9}    ({rows} rows x {COLUMNS}, scales from 2^31)")
    for distinct in (1, 10, 100, 1_000):
        epsilons = Epsilons.of_millionths(EPSILON - np.arange(rows) % distinct)
        took = nanoseconds(partial(BulkNoise().laplace, 2**31, epsilons, COLUMNS), rows * COLUMNS)
        print(f"{distinct:>22} {took:>9.1f}")
    epsilons = Epsilons.of_millionths(EPSILON + np.arange(2_000))
    start = time.perf_counter_ns()
    BulkNoise().laplace(2**31, epsilons, COLUMNS)
    took = (time.perf_counter_ns() - start) / len(epsilons)
    print(f"every row its own, never seen before: {took / 1000:.0f} us a row")


def other_kinds() -> None:
    rows = 100_000
    epsilons = Epsilons.same(1, rows)
    print(f"\n{f'{rows} rows':>22} {'numpy ns':>9} {'bulk ns':>9} {'bulk/numpy':>11}    (a value)")
    kinds: list[tuple[str, int, Callable[[Noise], object]]] = [
        *((f"cube x {d}, scale 2^31", d, lambda s, d=d: s.cube(2**31, epsilons, d)) for d in (3, 10, 23)),
        ("cube x 23, scale 1", 23, lambda s: s.cube(1, epsilons, 23)),
        ("tosses x 13", 13, lambda s: s.tosses(Odds(0, 1, 1, 1), epsilons, 13)),
        ("uniform below 23 x 13", 13, lambda s: s.uniform(23, rows, 13)),
    ]
    for name, columns, draw in kinds:
        numpy_time, bulk_time = (
            nanoseconds(partial(draw, source), rows * columns) for source in (FloatNoiseForExperiments(0), BulkNoise())
        )
        print(f"{name:>22} {numpy_time:>9.1f} {bulk_time:>9.1f} {bulk_time / numpy_time:>11.2f}")


if __name__ == "__main__":
    by_scale()
    by_count()
    by_distinct_epsilons()
    other_kinds()
