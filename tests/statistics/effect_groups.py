"""What each paradigm tells of the differences between women and men in the public answers: the documentation's table.

`python -m tests.statistics.effect_groups` releases the effects by gender a hundred times at epsilon 1, and counts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from tests.real_data import MORAL_MACHINE, MORAL_MACHINE_ABOUT

import crowdveil as cv
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import paradigm
from crowdveil.publish.groups import experiment_protected_groups, preference_differences, preview_groups
from crowdveil.publish.request import Request

RELEASES = 100
PREFERENCES = 30
MAPPING = Path(__file__).parents[2] / "examples/moral-machine-about.toml"


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mm.parquet"
        cv.import_moral_machine(MORAL_MACHINE, path, about=MORAL_MACHINE_ABOUT, mapping=MAPPING)
        ballots = cv.read_ballots(path)
    shown = ("gender", "species", "intervention", "age")
    print(f"| paradigm | {' | '.join(shown)} | a difference may be off by |\n|---|{'---|' * (len(shown) + 1)}")
    exact = {one.factor: one for one in cv.exact_effects(ballots, "gender").differences}
    cells = " | ".join(
        f"{exact[name].estimate:+.2f}{'' if exact[name].told_apart else ' (not told)'}" for name in shown
    )
    widths = [(exact[name].high - exact[name].low) / 2 for name in shown[:2]]
    print(f"| without privacy | {cells} | {np.mean(widths):.2f} |")
    for name in ("alcp", "rlcp", "vlcp", "aldp", "rldp", "vldp"):
        told, widths = dict.fromkeys(exact, 0), []
        for seed in range(RELEASES):
            made = cv.effects_for_experiments(ballots, name, epsilon=1, seed=seed, by="gender")
            for one in made.effects.differences:
                told[one.factor] += one.told_apart
                widths += [(one.high - one.low) / 2] if one.factor in shown[:2] else []
        cells = " | ".join(f"{told[factor]} %" for factor in shown)
        print(f"| `{name}` | {cells} | {np.median(widths):.2f} |", flush=True)
    by_secret_group(ballots)


def by_secret_group(ballots: cv.Ballots) -> None:
    """Print what the preferences of groups whose members are secret tell, voters being protected by an aggregator."""
    asked = preview_groups(ballots, "gender", Request(paradigm("vlcp"), Epsilon(1)))
    told, widths, sizes = 0, [], []
    for seed in range(PREFERENCES):
        made = experiment_protected_groups(ballots, asked, seed).releases
        sizes.append([release.facts["group_voters"] for release in made.values()])
        for one in preference_differences(made):
            told += one.told_apart
            widths.append((one.high - one.low) / 2)
    print(
        f"release --by gender, vlcp: {told} of {len(widths)} differences told, "
        f"off by up to {np.median(widths):.2f}; voters {np.mean(sizes, axis=0).round().tolist()}"
    )


if __name__ == "__main__":
    main()
