"""How long a person waits for a short command, beside ``python -c "import numpy"`` in the same environment.

    python benchmarks/startup.py [ROUNDS]

Each round starts every program once, in turn, so that a busy machine slows all of them; the shortest time of each
counts. ``--version``, ``--help`` and ``decide`` must stay below 4 times numpy.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import crowdveil as cv

MOST = 4.0
BOUNDED = ("--version", "--help", "decide")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.json"
        crowd = cv.synthetic_crowd(30, 10, 5, np.random.default_rng(1)).ballots
        cv.release_for_experiments(crowd, "vlcp", epsilon=1, seed=1).save(path)
        dilemma = json.dumps([{"features": {"x1": 1}}, {"features": {"x2": 1}}])
        crowdveil = [sys.executable, "-m", "crowdveil"]
        programs = {
            "import numpy": [sys.executable, "-c", "import numpy"],
            "--version": [*crowdveil, "--version"],
            "--help": [*crowdveil, "--help"],
            "decide": [*crowdveil, "decide", str(path), dilemma, "--allow-experiment"],
            "release --help": [*crowdveil, "release", "--help"],
        }
        shortest = dict.fromkeys(programs, float("inf"))
        for _ in range(rounds):
            for name, words in programs.items():
                begun = time.perf_counter()
                subprocess.run(words, check=True, capture_output=True)
                shortest[name] = min(shortest[name], time.perf_counter() - begun)
    numpy = shortest.pop("import numpy")
    print(f"{'import numpy':16} {numpy * 1000:6.0f} ms")
    for name, seconds in shortest.items():
        print(f"{name:16} {seconds * 1000:6.0f} ms   {seconds / numpy:4.1f} times")
    slow = [name for name in BOUNDED if shortest[name] > MOST * numpy]
    if slow:
        sys.exit(f"slower than {MOST:g} times numpy: {', '.join(slow)}")


if __name__ == "__main__":
    main()
