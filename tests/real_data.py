"""Public data sets beside the repository, and the mark of tests that are skipped where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

_DATA = Path(__file__).parents[1] / "../shared/data"
MORAL_MACHINE = _DATA / "moral_machine/us_2097_voters.csv.gz"
MORAL_MACHINE_ABOUT = _DATA / "moral_machine/us_2097_about.csv.gz"
MODELS = _DATA / "moral_machine/us_2097_models.csv.gz"
KIDNEY = _DATA / "kidney/exp2_82_voters.csv.gz"
INDECISION = _DATA / "indecision/study_1_122_people.csv.gz"
FAIRNESS = _DATA / "fairness/questions_738_people.csv.gz"
FAIRNESS_ABOUT = _DATA / "fairness/about_738_people.csv.gz"

with_moral_machine = pytest.mark.skipif(not MORAL_MACHINE.exists(), reason="the public Moral Machine file is not here")
with_kidney = pytest.mark.skipif(not KIDNEY.exists(), reason="the public kidney file is not here")
with_indecision = pytest.mark.skipif(not INDECISION.exists(), reason="the public indecision file is not here")
with_fairness = pytest.mark.skipif(not FAIRNESS.exists(), reason="the public fairness file is not here")
