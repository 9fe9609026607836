"""The tag of a module changes with all that it imports, and with nothing else."""

import shutil
from pathlib import Path

import pytest

import crowdveil
from crowdveil.evaluation.toolkit.sweep import code_tag

FILES = {
    "house/__init__.py": "",
    "house/door.py": "from house.lock import turn\nimport house.hinge\n",
    "house/lock.py": "from house import key\n",
    "house/key.py": "teeth = 5\n",
    "house/hinge.py": "import os\n",
    "house/garden/__init__.py": "trees = 1\n",
    "house/window.py": "from house.garden import trees\n",
    "house/garden/plan.toml": "beds = 3\n",
}


@pytest.fixture
def house(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def tags(above):
    code_tag.cache_clear()
    return [code_tag(module, above) for module in ("house.door", "house.window")]


@pytest.mark.parametrize(("file", "door", "window"), [
    ("house/door.py", True, False),
    ("house/lock.py", True, False),
    ("house/key.py", True, False),
    ("house/hinge.py", True, False),
    ("house/garden/__init__.py", False, True),
    ("house/garden/plan.toml", False, True),
])  # fmt: skip
def test_a_change_is_seen_where_it_matters(house, file, door, window):
    before = tags(house)
    (house / file).write_text((house / file).read_text() + "# changed\n")
    after = tags(house)
    assert [a != b for a, b in zip(before, after, strict=True)] == [door, window]


def test_a_change_of_the_library_changes_the_experiments(tmp_path):
    above = tmp_path / "src"
    shutil.copytree(Path(crowdveil.__file__).parent, above / "crowdveil", ignore=shutil.ignore_patterns("__pycache__"))
    before = code_tag("crowdveil.evaluation.paper.experiments", above)
    for file, matters in (
        ("estimation/l1_ball.py", True),
        ("privacy/mechanisms/algorithm3.py", True),
        ("study/bundled/moral-machine.toml", True),
        ("evaluation/toolkit/scores.py", True),
        ("evaluation/paper/plan.py", False),
        ("evaluation/toolkit/plotting.py", False),
        ("releases.py", False),
    ):
        path = above / "crowdveil" / file
        text = path.read_text()
        path.write_text(text + "\n# changed\n")
        code_tag.cache_clear()
        assert (code_tag("crowdveil.evaluation.paper.experiments", above) != before) == matters, file
        path.write_text(text)
    code_tag.cache_clear()
