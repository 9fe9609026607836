"""Ask a website's crowd, and defer to a person where it is too close to call.

Usage: python examples/ask_the_crowd.py https://crowd.example
"""

import sys

from crowdveil import Client, CrowdveilError

DILEMMA = [
    {"name": "Ana", "features": {"life_years_gained": 20, "years_waiting": 1}},
    {"name": "Ben", "features": {"life_years_gained": 5, "years_waiting": 7}},
]


def main(url: str) -> None:
    """Decide one dilemma as the voters of the poll called kidney would."""
    with Client(url) as client:
        decision = client.decide(DILEMMA, poll="kidney")
    if decision.choice is None:
        print("ask a person:", decision.reason)
    else:
        print(f"choose {decision.choice}, certain to {decision.certainty:.1%} (release {decision.release[:12]})")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (CrowdveilError, TypeError) as error:
        sys.exit(f"{error}\n{__doc__}")
