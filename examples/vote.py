"""Take part in a distributed poll from the terminal: the answers never leave this machine.

Usage: python examples/vote.py https://crowd.example POLL
"""

import sys

from crowdveil import Client, CrowdveilError, Dilemma


def one_of(*offered: str) -> str:
    """Ask until the answer is one that is offered."""
    said = " or ".join(offered)
    while (answer := input(f"{said}: ").strip()) not in offered:
        print(f"Please type {said}.")
    return answer


def main(url: str, name: str) -> None:
    """Ask a person each dilemma, add the noise here, and send the report."""
    with Client(url) as client:
        poll = client.poll(name)
        if not poll.distributed:
            sys.exit(f"{name} sends exact answers to its host; this program does not")
        print(poll.study.title)
        for level in poll.levels:
            print(f"  {level.name}: epsilon {level.epsilon}")
        chosen = input("Your level of privacy: ")

        def choose(dilemma: Dilemma) -> str:
            left, right = dilemma.alternatives
            print(f"\n{poll.study.question}\n  1  {poll.study.describe(left)}\n  2  {poll.study.describe(right)}")
            return "left" if one_of("1", "2") == "1" else "right"

        submission = client.submission(poll, choose, chosen)
        if submission.relay is None:
            print("\nThis is all that will be sent:\n", submission.body.decode())
        else:
            print(f"\nAll that will be sent, by way of {submission.relay}: {len(submission.body):,} sealed bytes")
        receipt = client.send(submission)
    print(f"Stored as {receipt.id}. To withdraw, keep this token: {receipt.token}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (CrowdveilError, TypeError) as error:
        sys.exit(f"{error}\n{__doc__}")
