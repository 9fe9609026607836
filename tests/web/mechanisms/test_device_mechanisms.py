"""The mathematics of the voter's page: node's own tests, damaged copies that must be caught, crowds beside Python's."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crowdveil.estimation.design import measured_design
from crowdveil.estimation.l1_ball import fit_in_ball
from crowdveil.estimation.record_axes import record_axes
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.one_bit import bits_to_report
from crowdveil.privacy.mechanisms.randomised_response import choices_to_report
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED, distributed
from crowdveil.privacy.mechanisms.score_release import coordinates_to_report
from crowdveil.privacy.mechanisms.subset_selection import subset_size
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.protocol.report import Terms, check_report, read_reports
from crowdveil.sources.simulated import simulate_responses
from crowdveil.study.bundled import BUNDLED, load_study
from crowdveil.study.features import Factor
from crowdveil.study.study import Drawing, Feature, Study

HERE = Path(__file__).parent
MODULES = HERE.parents[2] / "src/crowdveil/web/mechanisms"
VOTERS = 400
EPSILON = Epsilon(6)
MICRO = EPSILON.micro
DEVIATIONS = 7
"""Between two estimates with independent noise: 3e-12 for each of 224 comparisons, as they are nearly normal."""


def run(node, *arguments, given=None):
    """Run node; what never ends is an error, not a hung test."""
    return subprocess.run(
        [node, *arguments], input=given, capture_output=True, text=True, encoding="utf-8", check=False, timeout=600
    )


@pytest.mark.parametrize("name", sorted(path.name for path in HERE.glob("*.test.mjs")))
def test_nodes_tests_pass(node, name):
    done = run(node, "--test", str(HERE / name))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fail 0" in done.stdout
    assert "pass 0" not in done.stdout


MISTAKES = {
    "a grid of half the steps": ("grid.js", "STEPS = 2 ** 30", "STEPS = 2 ** 29"),
    "a norm that nobody checks": ("grid.js", "if (excess <= 0) return", "if (excess < Infinity) return"),
    "half the sensitivity of a preference": ("grid.js", "= 2n * BigInt(STEPS)", "= 1n * BigInt(STEPS)"),
    "half the linear part": ("grid.js", "const first = 2 *", "const first = 1 *"),
    "a smaller quadratic part": ("grid.js", "Math.SQRT2 * dimension", "dimension"),
    "no steps for truncation": ("grid.js", "* STEPS) + coefficients", "* STEPS)"),
    "half the sensitivity of answers": ("grid.js", "return 2n *", "return 1n *"),
    "half the sensitivity of scores": ("score.js", "= 2n * BigInt(RECORD_CLIP)", "= 1n * BigInt(RECORD_CLIP)"),
    "scores clipped twice as far": ("score.js", "wholeWithin(value, clip)", "wholeWithin(value, 2 * clip)"),
    "noise for one coordinate of many": ("score.js", "epsilon, chosen.length)", "epsilon, 1)"),
    "records longer than one": ("algorithm-3.js", "> RECORD_STEPS * RECORD_STEPS)", "> 9 * RECORD_STEPS ** 2)"),
    "twice the epsilon on coefficients": ("algorithm-3.js", "epsilon, exact.length", "2 * epsilon, exact.length"),
    "twice the epsilon on a preference": ("algorithm-2.js", "epsilon, steps.length", "2 * epsilon, steps.length"),
    "twice the epsilon on answers": ("algorithm-3-choices.js", "epsilon, dimension)", "2 * epsilon, dimension)"),
    "an epsilon counted in other units": ("coins.js", "MICROS_PER_UNIT = 1_000_000n", "MICROS_PER_UNIT = 1_000n"),
    "too few flips": ("coins.js", "FLIP = [0n, 1n, 1n, 1n]", "FLIP = [0n, 1n, 2n, 1n]"),
    "a corner too often among the signs": ("subset-selection.js", "BigInt(2 * dimension) - k]", "0n]"),
    "one sign too many": ("subset-selection.js", "among ? size - 1 : size", "size"),
    "options kept too often": ("about.js", "BigInt(count - 1)]", "BigInt(count - 2)]"),
    "a tick that is always true": ("about.js", "ticks[asked] === kept", "ticks[asked]"),
    "an option drawn among those that were ticked": (
        "about.js",
        "const asked = noise.below(ticks.length);",
        "const asked = ticks.indexOf(true) < 0 ? noise.below(ticks.length) : ticks.indexOf(true);",
    ),
    "a check that is sent": ("questions.js", "expected !== null", "expected === 0"),
    "an option that is never another": ("about.js", "other < truth ? other : other + 1", "other"),
    "an epsilon spent on every answer": ("one-choice.js", "Math.floor(epsilon / k)", "epsilon"),
    "an epsilon spent on every bit": ("one-bit.js", "Math.floor(epsilon / m)", "epsilon"),
    "bits that are not turned over": ("one-bit.js", "said[i] === turned[i] ? -1 : 1", "said[i] ? 1 : -1"),
    "an axis chosen by the answers": (
        "one-bit.js",
        "noise.order(scores.length)",
        "noise.order(scores.length).sort((a, b) => scores[b] - scores[a])",
    ),
    "lengths where it is loud": ("one-bit.js", "noise.below(LENGTH_ONE_IN) === 0", "scores[0] > count * design.clip"),
    "lengths of other ballots": ("one-bit.js", "22 * (n - 1)", "22 * n"),
    "more records than are scored": ("one-bit.js", "Math.min(records.length, design.records)", "records.length"),
    "the first records and not any": ("one-bit.js", "noise.order(records.length).slice", "[...records.keys()].slice"),
    "scores of another sign": ("one-bit.js", "drawn < score + count * clip", "drawn < count * clip - score"),
    "a second answer that is not turned over": (
        "reliability.js",
        "same === noise.toss(FLIP, epsilon) ? -1 : 1",
        "same ? 1 : -1",
    ),
    "a bit where answers differ": ("reliability.js", "noise.below(ONE_IN) === 0", "!same"),
    "the same side taken for the same outcome": (
        "reliability.js",
        "? first === chosen : first !== chosen",
        "? first === chosen : first === chosen",
    ),
    "zeros too often": ("noise.js", "(q << (bits + 1n))", "(q << bits)"),
    "noise of one sign": ("noise.js", "(negative ? -size : size)", "size"),
    "a tail that ends at once": ("noise.js", "while (toss(random, this.#coins[TAIL]))", "while (false)"),
    "a radius with a part too few": ("noise.js", "i <= dimension", "i < dimension"),
    "a radius without its shift": ("noise.js", "radius += BigInt(invert", "BigInt(invert"),
    "other numbers than Euler's": ("noise.js", "BigInt(2 * (n - k) + 1)", "BigInt(2 * (n - k))"),
    "an exponential that is squared too rarely": ("coins.js", "i < halvings", "i < halvings - 1"),
    "coins that fall half as often": ("coins.js", "return digits < known", "return digits < known / 2n"),
    "a remainder in place of a rejection": ("random.js", "if (value < bound) return value", "return value % bound"),
}


@pytest.fixture(scope="module")
def complaints(node, tmp_path_factory):
    """What the checks say of a copy of the modules for each mistake, with that mistake in it."""
    folders = {}
    for mistake, (name, right, wrong) in MISTAKES.items():
        damaged = tmp_path_factory.mktemp("damaged") / "mechanisms"
        shutil.copytree(MODULES, damaged)
        text = (damaged / name).read_text(encoding="utf-8")
        assert text.count(right) == 1, mistake
        (damaged / name).write_text(text.replace(right, wrong), encoding="utf-8")
        folders[mistake] = f"{damaged.as_uri()}/"
    done = run(node, str(HERE / "run-checks.mjs"), *folders.values())
    assert done.returncode == 0, done.stderr
    return dict(zip(folders, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_does_not_pass(complaints, mistake):
    assert complaints[mistake]


def test_a_mechanism_promises_the_same_and_carries_the_same_answers_here_and_in_python(node):
    script = f"import {{ MECHANISMS }} from {json.dumps((MODULES / 'report.js').as_uri())};"
    script += f"import {{ TERMS }} from {json.dumps((MODULES / 'terms.js').as_uri())};"
    script += "console.log(JSON.stringify([TERMS, Object.values(MECHANISMS).map(({ name }) => name)]));"
    done = run(node, "--input-type=module", "--eval", script)
    assert done.returncode == 0, done.stderr
    terms, named = json.loads(done.stdout)
    assert list(terms) == named
    assert set(terms) == set(DISTRIBUTED)
    three = replace(load_study("kidney"), indifference="Toss a coin")
    for name, mechanism in DISTRIBUTED.items():
        told = terms[name]
        assert told["units"] == [PARADIGMS[paradigm].unit.value for paradigm in mechanism.paradigms]
        also_protects_voters = "also_protects" in getattr(mechanism, "facts", {})
        assert told.get("wholeVoter", False) == ("voter" in told["units"] or also_protects_voters)
        bits = "indifferent" in distributed(name, three).wire.fields
        assert told.get("thirdAnswer") == (("bits" if bits else "answers") if mechanism.third_answer else None)


NUMBERS = [0.1, 1e-5, 1.5e-7, 123456789012345.6, 1e16, 1.2345e21, 5e-324, -1.7e308, 1 / 3, 100.0, 0.0001]


def test_a_study_has_the_same_fingerprint_here_and_in_python(node):
    """For every way in which a float or a key is written."""
    studies = [load_study(name) for name in BUNDLED]
    words = {"0": "none", "other": '{n} \u00e9\u4e16\n"\\\x7f\x01\u2028', "\U0001d7d9": "b", "\uff11": "a"}
    levels = (0.1, -0.0, 1 / 3, 100.0, -123.456)
    features = tuple(
        Feature(f"f{k}", "a label", -1e12 / 3, 1e12 / 3, 1e7 / 3, levels, words, "part", lean)
        for k, lean in enumerate(NUMBERS)
    )
    drawing = Drawing("independent", 3)
    studies.append(Study("s", "t", "q", features, drawing, norm_bound=1e22, record_norm=1e-9, parts=("part",)))
    bare = tuple(Feature(name, name, 0, 1, levels=(0, 1)) for name in ("low", "unit", "constructor"))
    named = (Factor("levels", "\u4e16", ("a", "b"), {"low": 2, "unit": -3}), Factor("f", "f", ("a", "b"), {"unit": 1}))
    own = tuple(Factor(f.name, "f", ("a", "b"), {f.name: 1}) for f in bare)
    studies += [Study("s", "t", "q", bare, drawing, named_factors=factors) for factors in ((), named, named[::-1], own)]
    studies.append(replace(studies[-1], along="features"))
    script = f"import {{ fingerprint }} from {json.dumps((MODULES / 'study.js').as_uri())};"
    script += "import { readFileSync } from 'node:fs'; const studies = JSON.parse(readFileSync(0, 'utf8'));"
    script += "console.log(JSON.stringify(studies.map(fingerprint)));"
    given = json.dumps([study.as_dict() for study in studies])
    done = run(node, "--input-type=module", "--eval", script, given=given)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [study.fingerprint for study in studies]


def test_fits_are_those_of_python(node):
    rng = np.random.default_rng(7)
    cases = []
    for name in ("moral-machine", "kidney", "synthetic-30"):
        ballots = next(simulate_responses(load_study(name), 40, rng)).ballots()
        cases += [(ballots[i : i + 1].differences.astype(float), 2.0) for i in range(40)]
    cases += [(np.round(rng.standard_normal((n, 30)) * 2), bound) for n in (1, 20, 200) for bound in (0.5, 2.0, 20.0)]
    given = [{"records": records.tolist(), "norm_bound": bound} for records, bound in cases]
    done = run(node, str(HERE / "fit-voters.mjs"), given=json.dumps(given))
    assert done.returncode == 0, done.stderr
    for (records, bound), found in zip(cases, json.loads(done.stdout), strict=True):
        wanted = fit_in_ball(records, np.array([0, len(records)]), bound).values[0]
        assert np.abs(wanted - found).max() <= 1e-9 * bound


def poll_of(study, mechanism):
    """What a server tells of a poll, as far as a report needs it."""
    count, epsilon = np.array([study.drawing.dilemmas]), Epsilons.of_millionths([MICRO])
    scoring = DISTRIBUTED[mechanism].scoring(study)
    sizes = {
        "score": lambda: int(coordinates_to_report(record_axes(study), count, epsilon)[0]),
        "subset-selection": lambda: subset_size(study.dimension, MICRO / 1e6),
        "one-choice": lambda: int(choices_to_report(count, epsilon)[0]),
        "one-bit": lambda: bits_to_report(measured_design(study).directions, EPSILON),
    }
    return {
        "study": study.as_dict(),
        "study_fingerprint": study.fingerprint,
        "mechanism": mechanism,
        "levels": [{"name": "light", "epsilon_micro": MICRO, "size": sizes.get(mechanism, lambda: None)()}],
        "method": {
            "norm_bound": study.norm_bound,
            "record_bound": study.record_bound,
            "axes": scoring and scoring.axes.tolist(),
            "units": scoring and scoring.units.tolist(),
            "clip": scoring and scoring.clip,
            "records": scoring and scoring.records,
        },
        "questions": [],
    }


def crowd_of(name, along=None):
    """A study, its voters' ballots, and what each of their devices knows."""
    study = replace(load_study(name), along=along)
    answered = next(simulate_responses(study, VOTERS, np.random.default_rng(3)))
    each = study.drawing.dilemmas
    voters = [
        {
            "dilemmas": [
                {"left": left, "right": right}
                for left, right in zip(answered.left[at].tolist(), answered.right[at].tolist(), strict=True)
            ],
            "choices": ["left" if chosen else "right" for chosen in answered.chose_left[at].tolist()],
        }
        for at in (slice(start, start + each) for start in range(0, VOTERS * each, each))
    ]
    return study, answered.ballots(), voters


SLOW = pytest.mark.slow


@pytest.fixture(
    scope="module",
    params=["kidney", pytest.param("moral-machine", marks=SLOW), pytest.param("synthetic-4", marks=SLOW)],
)
def crowd(request):
    return crowd_of(request.param)


def differ(node, mechanism, study, ballots, voters):
    """Whether what the devices of these voters say and what Python says of these ballots are too far apart."""
    given = {"poll": poll_of(study, mechanism), "epsilon_micro": MICRO, "voters": voters}
    done = run(node, str(HERE / "make-reports.mjs"), given=json.dumps(given))
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    print(f"{study.name}, {mechanism}: {made['milliseconds']:.2f} ms a report")
    settings = MechanismSettings(study, study.norm_bound, drawn=True)
    terms = Terms(mechanism, settings, [EPSILON])
    bodies = [json.loads(report) for report in made["reports"]]
    for body in bodies:
        check_report(body, terms)
    theirs = DISTRIBUTED[mechanism].aggregate([read_reports(bodies, terms)], settings)
    batch = DISTRIBUTED[mechanism].report(ballots, settings, Epsilons.same(EPSILON, VOTERS), BulkNoise())
    ours = DISTRIBUTED[mechanism].aggregate([batch], settings)
    # A coordinate that few reports speak of may look more certain than it is: none counts as better than the average.
    variance = sum(np.square(e.noise.half_widths(0.6827)) * np.ones(study.dimension) for e in (theirs, ours))
    deviation = np.sqrt(np.maximum(variance, variance.mean()))
    return bool((np.abs(theirs.parameter - ours.parameter) > DEVIATIONS * deviation).any())


@pytest.mark.parametrize("mechanism", DISTRIBUTED)
def test_a_crowd_of_devices_says_what_python_says(node, crowd, mechanism):
    assert not differ(node, mechanism, *crowd)


@pytest.mark.parametrize("mechanism", ["one-bit", "score"])
def test_a_crowd_of_devices_that_report_along_every_direction_says_what_python_says(node, mechanism):
    study, *crowd = crowd_of("moral-machine", along="features")
    assert len(poll_of(study, mechanism)["method"]["axes"][0]) == study.dimension > len(study.factors)
    assert not differ(node, mechanism, study, *crowd)


# Of so few voters, Algorithm 3, single choices and single bits tell too little for this to be certain.
@pytest.mark.parametrize("mechanism", sorted(set(DISTRIBUTED) - {"algorithm-3", "one-bit", "one-choice"}))
def test_a_crowd_of_devices_with_left_for_right_is_noticed(node, mechanism):
    study, ballots, voters = crowd_of("kidney")
    for voter in voters:
        voter["choices"] = ["right" if choice == "left" else "left" for choice in voter["choices"]]
    assert differ(node, mechanism, study, ballots, voters)
