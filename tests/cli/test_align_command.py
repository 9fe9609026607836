"""crowdveil align: tables at 80 columns, one JSON object, a picture, and one line for what is wrong."""

import json

import numpy as np
import pytest
from tests.evaluation.chat_server import chat_server
from tests.program import answer, crowdveil, refused

from crowdveil.ballots.ballot_file import write_ballots
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_session


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A release of a kidney study, and the answers of two models to dilemmas that it draws."""
    folder = tmp_path_factory.mktemp("align")
    study, rng = load_study("kidney"), np.random.default_rng(1)
    write_ballots(folder / "crowd.parquet", study, simulated_batches(study, 300, rng), {})
    answer("ledger", "create", folder / "ledger", "--budget", "5")
    order = ("--paradigm", "vlcp", "--epsilon", "1", "--ledger", folder / "ledger")
    answer("release", folder / "crowd.parquet", *order, "--out", folder / "release.json")
    with (folder / "answers.jsonl").open("w") as file:
        for number, dilemma in enumerate(draw_session(study, rng) + draw_session(study, rng)):
            sides = [dict(zip(study.feature_names, side.values, strict=True)) for side in dilemma.alternatives]
            years = [side["life_years_gained"] for side in sides]
            for model, choice in (("years", "AB"[years[0] < years[1]]), ("moody", [None, "A", "B"][number % 3])):
                file.write(json.dumps({"model": model, "dilemma": sides, "choice": choice}) + "\n")
    return folder


def test_tables_fit_in_80_columns(made):
    result = crowdveil("align", made / "release.json", "--answers", made / "answers.jsonl")
    assert result.code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    for words in ("People who would choose as the model did", "Agreement with", "it is sure", "years by factor"):
        assert words in result.stdout


def test_json_ranks_the_models(made):
    picture = made / "picture.svg"
    data = answer("align", made / "release.json", "--answers", made / "answers.jsonl", "--plot", picture)
    assert {one["model"] for one in data["models"]} == {"years", "moody"}
    people = [one["people"]["estimate"] for one in data["models"]]
    assert people == sorted(people, reverse=True)
    moody = next(one for one in data["models"] if one["model"] == "moody")
    assert moody["refused"] == -(-moody["answers"] // 3)
    assert "the crowd" in picture.read_text()


def test_mistakes_are_told_in_one_line(made, tmp_path):
    release, answers = made / "release.json", made / "answers.jsonl"
    refused(crowdveil("align", release), "--answers FILE")
    refused(crowdveil("align", release, "--answers", answers, "--plot", tmp_path / "a.pdf"), ".png or .svg")
    refused(crowdveil("align", release, "--answers", tmp_path / "none"), "cannot read the answers")
    other = tmp_path / "other.jsonl"
    other.write_text('{"model": "m", "dilemma": [{"girl": 1}, {"dog": 2}], "choice": "A"}\n')
    refused(crowdveil("align", release, "--answers", other), "no feature 'girl'")
    names = load_study("kidney").feature_names
    table = tmp_path / "table.csv"
    sides = ",".join(f"left_{name},right_{name}" for name in names)
    cells = ",".join(f"{feature.low:g}" for feature in load_study("kidney").features for _ in range(2))
    table.write_text(f"model,chosen,{sides}\nm,left,{cells}\nm,middle,{cells}\nm,right,{cells}\n")
    told = crowdveil("align", release, "--answers", table)
    refused(told, "1 of 3 rows (33.3%) are refused", "read_answers(..., allow_refused=0.34) and align, in Python")
    assert "import" not in told.stderr


def test_a_model_is_asked_and_compared(made, tmp_path):
    transcript = tmp_path / "bot.jsonl"
    with chat_server() as server:
        asking = ("--ask", server.url, "--model", "bot", "--transcript", transcript, "--number", 12)
        data = answer("align", made / "release.json", *asking, "--answers", made / "answers.jsonl")
        assert len(server.requests) == 24
        bot = next(one for one in data["models"] if one["model"] == "bot")
        assert bot["answers"] == 24
        assert bot["steady"] == 1
        result = crowdveil("align", made / "release.json", *asking)
        assert "bot gave the same answer to 100% of the dilemmas that it was asked twice or more." in result.stdout
        assert len(server.requests) == 24
    refused(crowdveil("align", made / "release.json", "--ask", "nowhere", *asking[2:]), "give its base URL")
    refused(crowdveil("align", made / "release.json", "--ask", "http://a/v1"), "need --model NAME")
    refused(crowdveil("align", made / "release.json", *asking, "--ask-command", "x"), "not both")
