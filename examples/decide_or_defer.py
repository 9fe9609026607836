"""An AI asks a release what to do, and asks a person where the release cannot tell.

    python examples/decide_or_defer.py RELEASE

RELEASE is a release of the study "kidney".
"""

import sys
from pathlib import Path

from crowdveil import CrowdveilError, Decision, decide, read_release

PATIENTS = [
    {"name": "Ana", "features": {"life_years_gained": 20, "years_waiting": 1}},
    {"name": "Ben", "features": {"life_years_gained": 5, "years_waiting": 7}},
    {"name": "Cem", "features": {"life_years_gained": 5, "years_waiting": 1, "obesity": 4}},
]


def act_on(decision: Decision) -> str:
    """Return what a careful program does with a decision."""
    if decision.choice is None:
        return f"ask a person: {decision.reason}"
    return f"choose {decision.choice} (certain to {decision.certainty:.1%})"


def main() -> int:
    """Decide between every two patients, and between all three."""
    try:
        release = read_release(Path(sys.argv[1]))
        for left, right in ((0, 1), (0, 2), (1, 2)):
            pair = [PATIENTS[left], PATIENTS[right]]
            print(f"{pair[0]['name']} or {pair[1]['name']}: {act_on(decide(release, pair))}")
        everybody = decide(release, PATIENTS, certainty=0.95)
        print(f"All three, in order: {', '.join(ranked.name for ranked in everybody.ranking)}; {act_on(everybody)}")
    except CrowdveilError as error:
        print(f"cannot decide: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
