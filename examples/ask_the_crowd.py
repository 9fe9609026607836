"""Ask a website's crowd, and defer to a person where it is too close to call.

Usage: python examples/ask_the_crowd.py https://crowd.example
"""

import sys

from crowdveil import CrowdveilError
from crowdveil.client import Client

DILEMMA = [
    {"name": "Ana", "features": {"life_years_gained": 20, "years_waiting": 1}},
    {"name": "Ben", "features": {"life_years_gained": 5, "years_waiting": 7}},
]


def main(url: str) -> None:
    """Decide one dilemma from the newest release of the kidney study."""
    with Client(url) as client:
        newest = next((one["id"] for one in client.releases() if one["study"] == "kidney"), None)
        if newest is None:
            sys.exit("the crowd of the kidney study has not been released yet")
        decision = client.decide(DILEMMA, release=newest)
    if decision.choice is None:
        print("ask a person:", decision.reason)
    else:
        print(f"choose {decision.choice}, certain to {decision.certainty:.1%} (release {decision.release[:12]})")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (CrowdveilError, TypeError) as error:
        sys.exit(f"{error}\n{__doc__}")
