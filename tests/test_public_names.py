"""Every public name: a wrong argument is one line of ours at the call, and an object shows itself in one.

A new function or class is covered by itself; it needs right values for its parameters, or one object, in ``things``.
"""

import inspect
import re
from pathlib import Path

import httpx
import numpy as np
import pytest

import crowdveil as cv
from crowdveil.protocol.decisions import read_decision, write_decision
from crowdveil.protocol.polls import Level, PollState
from crowdveil.protocol.submission import SubmissionStatus
from crowdveil.sources.simulated_layout import write_public_layout

EXAMPLES = Path(__file__).parents[1] / "examples"
FUNCTIONS = [name for name in cv.__all__ if inspect.isfunction(getattr(cv, name))]
CLASSES = [
    name for name in cv.__all__ if inspect.isclass(getattr(cv, name)) and not issubclass(getattr(cv, name), Exception)
]
MADE_BY_PEOPLE = (
    *("Alternative", "Category", "Client", "Dilemma", "Drawing", "Epsilon", "Epsilons", "Factor", "Feature", "Study"),
    *("TableMapping", "Weights", "ZcdpBudget"),
)
"""Classes that people call; the others are made by functions."""
METHODS = {
    "Alignment": ("plot",),
    "Ballots": ("filter", "from_arrays", "head", "save", "split", "take"),
    "Client": (
        *("decide", "decide_many", "poll", "release", "releases", "send", "session", "submission", "vote"),
        "withdraw",
    ),
    "Effects": ("effect", "factor", "plot", "write_table"),
    "EffectsRelease": ("page", "plot", "save"),
    "Evaluation": ("plot",),
    "GroupReleases": ("save",),
    "Ledger": ("create", "open", "raise_budget"),
    "Release": ("page", "plot", "save"),
    "Study": ("alternative", "describe", "difference", "dilemma", "from_dict"),
}
"""Methods that people call with arguments."""
CALLS = [
    *FUNCTIONS,
    *MADE_BY_PEOPLE,
    *(f"{name}.{method}" for name, methods in METHODS.items() for method in methods),
]

NEVER = object()
"""What no parameter takes."""
WRONG = (NEVER, None, "no such thing", -1.5, float("nan"), True, [], {"a": NEVER}, np.zeros((2, 2)))


def _no_such_page(request):
    return httpx.Response(404, json={"error": {"reason": "not-found", "message": "there is no such page"}})


@pytest.fixture(scope="module")
def things(tmp_path_factory):
    """A right value for each parameter without a default, by its name or by that of its function too; and objects."""
    folder = tmp_path_factory.mktemp("things")
    table, mapping, about = (
        EXAMPLES / name for name in ("kidney-answers.csv", "kidney-groups.toml", "kidney-about.csv")
    )
    ballots = cv.read_table(table, mapping=mapping, about=about)
    study = ballots.study
    answers = folder / "answers.csv"
    write_public_layout(answers, cv.load_study("moral-machine"), 3, np.random.default_rng(1), dirty=0.0)
    release = cv.release_for_experiments(ballots, "rlcp", epsilon=1, seed=1)
    effects = cv.effects_for_experiments(ballots, "rlcp", epsilon=1, seed=1)
    release.save(folder / "release.json")
    effects.save(folder / "effects.json")
    ballots.save(folder / "ballots.parquet")
    (folder / "epsilons.csv").write_text("voter,epsilon\n" + "".join(f"{v},1\n" for v in ballots.voter_names()))
    row = '{"model": "m", "dilemma": [{"obesity": 1, "years_waiting": 1}, {"years_waiting": 3}], "choice": "A"}\n'
    (folder / "models.jsonl").write_text(row)
    ledger = cv.Ledger.create(folder / "ledger", 10**6)
    http = httpx.Client(transport=httpx.MockTransport(_no_such_page))
    one, other = (cv.Alternative(name, (0.0,) * study.dimension) for name in "ab")
    models = cv.read_answers(folder / "models.jsonl", study)
    machine = cv.load_study("moral-machine")
    dilemma = machine.dilemma([{"girl": 1}, {"dog": 2}])
    crowd = cv.simulate_crowd(machine, 30, seed=1)
    decision = cv.decide(cv.release_for_experiments(crowd, "rlcp", epsilon=1, seed=1), dilemma)
    promise = cv.PARADIGMS["vldp"]
    return {
        "alternative": one,
        "alternatives": (one, other),
        "answers": models,
        "asked": cv.preview_together(ballots, "rlcp", epsilon=1),
        "ballots": ballots,
        "batches": [ballots],
        "bound": 2.0,
        "budget": 3,
        "by": "household",
        "choice": [1, -1],
        "choose": lambda dilemma: "left",
        "chosen": one,
        "delta": 1e-6,
        "dilemma": [{"obesity": 1, "years_waiting": 1}, {"years_waiting": 3}],
        "dilemmas": 2,
        "drawing": study.drawing,
        "effects_path": folder / "both-effects.json",
        "epsilon": 1,
        "epsilons": [1, 2],
        "factor": "obesity",
        "features": study.features,
        "given": [{"years_waiting": 1}, {"years_waiting": 3}],
        "high": 1.0,
        "keep": np.ones(ballots.voters, bool),
        "label": "a label",
        "ledger": ledger,
        "left": np.zeros((2, study.dimension)),
        "levels": ("red", "green"),
        "low": 0.0,
        "mapping": cv.load_mapping(EXAMPLES / "kidney-mapping.toml"),
        "method": "independent",
        "name": "name",
        "norm_bound": 2.0,
        "note": "why",
        "of_voters": {"ann": 1.0},
        "origin": {},
        "other": other,
        "out": folder / "imported.parquet",
        "paradigm": "rlcp",
        "path": folder / "written",
        "paths": folder / "models.jsonl",
        "poles": ("less", "more"),
        "poll": "poll",
        "positions": np.array([0, 2]),
        "question": "which?",
        "records": 3,
        "reference": "kidney",
        "release": release,
        "rho": 0.1,
        "right": np.zeros((2, study.dimension)),
        "rng": np.random.default_rng(1),
        "seed": 1,
        "share": 0.5,
        "source": ballots,
        "study": study,
        "submission": cv.Submission("poll", "report", "token", b"{}"),
        "title": "title",
        "token": "token",
        "url": "http://crowd.example",
        "value": 1,
        "values": (0.0, 1.0),
        "voters": 3,
        "weights": {"obesity": 1},
        "Ballots.from_arrays.voters": ["ann", "bob"],
        "Client.decide.alternatives": [{"obesity": 1}, {}],
        "Client.decide_many.dilemmas": [[{"obesity": 1}, {}]],
        "Effects.factor.name": "obesity",
        "Effects.plot.path": folder / "effects.png",
        "Effects.write_table.path": folder / "effects.csv",
        "EffectsRelease.plot.path": folder / "effects.png",
        "Evaluation.plot.path": folder / "evaluation.png",
        "Alignment.plot.path": folder / "alignment.png",
        "Ledger.create.path": folder / "new-ledger",
        "Ledger.open.path": ledger.path,
        "Ledger.raise_budget.budget": 10**7,
        "Study.alternative.features": {"years_waiting": 1},
        "Study.from_dict.data": study.as_dict(),
        "import_moral_machine.path": answers,
        "import_table.path": table,
        "load_mapping.path": mapping,
        "open_ballots.path": folder / "ballots.parquet",
        "read_ballots.path": folder / "ballots.parquet",
        "plan.epsilon": 1,
        "plan.voters": 1000,
        "preview.epsilon": 1,
        "read_effects.allow_experiment": True,
        "read_effects.path": folder / "effects.json",
        "read_moral_machine.path": answers,
        "read_personal_epsilons.path": folder / "epsilons.csv",
        "read_release.allow_experiment": True,
        "read_release.path": folder / "release.json",
        "read_table.path": table,
        "read_table.about": about,
        "read_table.mapping": mapping,
        "release.epsilon": 1,
        "release_for_experiments.epsilon": 1,
        "synthetic_crowd.features": 2,
        # An object of each class, whose methods are called; large ones where they have to be cut short.
        "Alternative": dilemma.alternatives[0],
        "BallotFile": cv.open_ballots(folder / "ballots.parquet"),
        "Category": cv.Category("colour", "Colour", ("red", "green")),
        "CrowdPreference": cv.crowd_preference(crowd),
        "Decision": decision,
        "Dilemma": dilemma,
        "Drawing": machine.drawing,
        "EffectsPreview": cv.preview_effects(crowd, "rlcp", epsilon=1),
        "Epsilon": cv.Epsilon(1),
        "Epsilons": cv.Epsilons([1] * 100),
        "Factor": machine.factors[0],
        "Feature": machine.features[0],
        "Forecast": cv.plan(machine, "rlcp", voters=1000, epsilon=1),
        "Guarantee": release.guarantee,
        "ImportReport": cv.import_moral_machine(answers, folder / "imported"),
        "JointPreview": cv.preview_together(crowd, "rlcp", epsilon=1),
        "Paradigm": promise,
        "Poll": cv.Poll("poll", machine, promise, "one-bit", (Level("only", cv.Epsilon(1)),)),
        "PollSummary": cv.PollSummary("poll", "A poll", PollState.OPEN, "vldp", None),
        "Preferences": cv.fit_voters(crowd, 2),
        "Preview": cv.preview(crowd, "rlcp", epsilon=1),
        "RankedAlternative": decision.ranking[0],
        "RemoteDecision": read_decision(write_decision(decision, "0" * 64)),
        "Society": cv.society(crowd, 2),
        "Submission": cv.Submission("poll", "report", "token", bytes(1000)),
        "SyntheticCrowd": cv.synthetic_crowd(30, 4, 3, np.random.default_rng(1)),
        "TableMapping": cv.load_mapping(mapping),
        "VoterReceipt": cv.VoterReceipt("0" * 32, SubmissionStatus.STORED, None, None, "token"),
        "Weights": cv.Weights({f"voter-{i}": 1.0 for i in range(100)}, 2),
        "ZcdpBudget": cv.ZcdpBudget(0.1, 1e-6),
        "Alignment": cv.align(release, models),
        "Ballots": ballots,
        "Client": cv.Client("http://crowd.example", http=http),
        "Effects": effects.effects,
        "EffectsRelease": effects,
        "Evaluation": cv.evaluate(release, ballots),
        "GroupReleases": cv.release_by(ballots, "household", "rlcp", epsilon=1, ledger=ledger),
        "Ledger": ledger,
        "Release": release,
        "Study": study,
    }


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_argument_is_one_line_of_ours(name, things, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    owner, _, method = name.partition(".")
    call = getattr(things[owner], method) if method else getattr(cv, name)
    parameters = inspect.signature(call).parameters.values()
    right = {
        one.name: things.get(f"{name}.{one.name}", things.get(one.name))
        for one in parameters
        if one.default is one.empty or f"{name}.{one.name}" in things
    }
    assert all(value is not None for value in right.values()), f"give right values above: {right}"
    if owner != "Client" or not method:  # whose website has no page
        call(**right)
    told = {}
    for one in parameters:
        for wrong in WRONG:
            given = f"{one.name}={wrong!r:.20}"
            try:
                call(**{**right, one.name: wrong})
            except cv.CrowdveilError as error:
                told |= {given: str(error)} if "\n" in str(error) else {}
            except Exception as error:
                told[given] = f"{type(error).__name__}: {error}"
            else:
                told |= {given: "taken"} if wrong is NEVER and one.annotation != "Any" else {}
    assert not told


@pytest.mark.parametrize("name", CLASSES)
def test_an_object_shows_itself_in_a_line(name, things):
    assert type(things[name]) is getattr(cv, name)
    shown = repr(things[name])
    assert "\n" not in shown
    assert len(shown) <= 200
    assert " object at 0x" not in shown
    assert "micro" not in shown


@pytest.mark.parametrize("name", [*FUNCTIONS, *(f"Client.{method}" for method in METHODS["Client"])])
def test_what_a_public_function_returns_is_public(name):
    owner, _, method = name.partition(".")
    call = getattr(getattr(cv, owner), method) if method else getattr(cv, name)
    returned = re.findall(r"[A-Z]\w+", inspect.signature(call).return_annotation)
    assert set(returned) <= {*cv.__all__, "Any", "Iterator", "None"}
