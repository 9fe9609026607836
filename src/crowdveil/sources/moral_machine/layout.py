"""The public layout of the Moral Machine (Awad et al. 2018, OSF 3hvt2): its columns, and their possible values.

A row is one group of characters in one dilemma, and a dilemma is two rows with the same ``ResponseID``. The row with
``Saved`` = 1 is the group that the voter spared. A voter is an ``ExtendedSessionID``. The 23 features are columns of
small whole numbers; ``NumberOfCharacters``, if it is given, must be the sum of the 20 counts.

``ScenarioType`` and ``ScenarioTypeStrict``, if they are given, say what the dilemma is about. A dilemma's type is known
if they agree, in both rows (as in the authors' own analysis); any other word is unknown.
"""

from __future__ import annotations

from crowdveil.study.drawing import CHARACTERS, LARGEST_GROUP

DILEMMA = "ResponseID"
VOTER = "ExtendedSessionID"
SAVED = "Saved"
SIZE = "NumberOfCharacters"
SIGNAL = "CrossingSignal"
SCENARIO, STRICT_SCENARIO = "ScenarioType", "ScenarioTypeStrict"
SCENARIOS = ("Utilitarian", "Gender", "Fitness", "Age", "Social Status", "Species", "Random")
SCENARIO_CODES = {label: code for code, label in enumerate(SCENARIOS, start=1)} | {"Social Value": 5}
"""Scenario types as small numbers; 0 is unknown."""
GREEN, RED = 1, 2
"""Values of ``CrossingSignal`` besides 0, no light. It is categorical: the study's ``legality`` is +1, -1 and 0."""


def column_of(feature: str) -> str:
    """Return the column from which a feature of the study comes."""
    return SIGNAL if feature == "legality" else "".join(w.capitalize() for w in feature.split("_"))


GROUP = tuple(column_of(character) for character in CHARACTERS)
HIGHEST = {"Intervention": 1, "Barrier": 1, SIGNAL: RED, **dict.fromkeys(GROUP, LARGEST_GROUP)}
"""The columns of the features, in the study's order, with the largest value of each; the smallest is 0."""

NEEDED = (DILEMMA, VOTER, SAVED, *HIGHEST)
OPTIONAL = (SIZE, SCENARIO, STRICT_SCENARIO)
COLUMNS = (
    DILEMMA,
    VOTER,
    "UserID",
    "ScenarioOrder",
    "Intervention",
    "PedPed",
    "Barrier",
    SIGNAL,
    "AttributeLevel",
    STRICT_SCENARIO,
    SCENARIO,
    "DefaultChoice",
    "NonDefaultChoice",
    "DefaultChoiceIsOmission",
    SIZE,
    "DiffNumberOFCharacters",
    SAVED,
    "Template",
    "DescriptionShown",
    "LeftHand",
    "UserCountry3",
    *GROUP,
)
"""All columns of the public files, in their order."""
