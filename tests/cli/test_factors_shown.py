"""`studies` and `describe` show the factors of a study."""

import numpy as np
from tests.program import answer, crowdveil

from crowdveil.ballots.ballot_file import write_ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.study.bundled import load_study


def test_a_studys_factors_are_shown_with_their_poles():
    shown = [line.split() for line in crowdveil("studies", "moral-machine").stdout.splitlines()]
    assert ["species", "Species", "pets", "people"] in shown
    assert answer("studies", "moral-machine")["factors"][0]["poles"] == ["pets", "people"]
    assert "factor" not in crowdveil("studies", "synthetic-3").stdout


def test_ballots_are_counted_by_factor(tmp_path):
    """Two women for two dogs, a dog for a girl, a large man for two athletes: counted by hand."""
    study = load_study("moral-machine")
    records = np.zeros((3, study.dimension), np.int8)
    for record, chosen in enumerate(
        ({"woman": 2, "dog": -2}, {"dog": 1, "girl": -1}, {"large_man": 1, "male_athlete": -1, "female_athlete": -1})
    ):
        for name, difference in chosen.items():
            records[record, study.feature_names.index(name)] = difference
    path = tmp_path / "three.parquet"
    write_ballots(path, study, [Ballots.from_differences(study, np.array([0, 3]), records)], {})
    counted = answer("describe", path)["factors"]
    assert {name: (seen["pairs_that_differ"], seen["chosen_had_more"]) for name, seen in counted.items()} == {
        "species": (3, 1 / 3),
        "number": (1, 0),
        "age": (1, 0),
        "fitness": (1, 0),
        "gender": (3, 1 / 3),
        "status": (0, None),
        "law": (0, None),
        "intervention": (0, None),
        "passenger": (0, None),
    }
    assert "Species: people" in crowdveil("describe", path).stdout
