"""What each paradigm tells of the differences between women and men in the public answers: the documentation's table.

`python -m tests.statistics.effect_groups` releases the effects by gender a hundred times at epsilon 1, and counts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from tests.real_data import MORAL_MACHINE, MORAL_MACHINE_ABOUT

import crowdveil as cv

RELEASES = 100
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
    for paradigm in ("alcp", "rlcp", "vlcp", "aldp", "rldp", "vldp"):
        told, widths = dict.fromkeys(exact, 0), []
        for seed in range(RELEASES):
            made = cv.effects_for_experiments(ballots, paradigm, epsilon=1, seed=seed, by="gender")
            for one in made.effects.differences:
                told[one.factor] += one.told_apart
                widths += [(one.high - one.low) / 2] if one.factor in shown[:2] else []
        cells = " | ".join(f"{told[name]} %" for name in shown)
        print(f"| `{paradigm}` | {cells} | {np.median(widths):.2f} |", flush=True)


if __name__ == "__main__":
    main()
