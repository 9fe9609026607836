"""Release files: readable, complete, and refused when edited, foreign, damaged or made by an experiment."""

import hashlib
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import PARADIGMS, Guarantee
from crowdveil.privacy.noise.distribution import EmpiricalNormal, Gaussian, LaplaceSum
from crowdveil.privacy.uncertainty import REACH, Uncertainty
from crowdveil.releases import Release, read_release, release_from_dict
from crowdveil.study.bundled import load_study, synthetic_study


def example(**changes):
    made = Release(
        study=synthetic_study(2),
        parameter=np.array([0.25, -0.1]),
        guarantee=Guarantee(
            PARADIGMS["vldp"], Epsilon.of_millionths(2_000_000), Epsilon.of_millionths(500_000), 2.0, 40
        ),
        mechanism="algorithm-2",
        noise=LaplaceSum((0.1, 0.4), (30, 10)),
        sampler="exact",
        exact=True,
        facts={"note": "x"},
        ledger={"id": "abc", "entry": 3},
        version="0.1.0",
    )
    return replace(made, **changes)


UNKNOWN = Uncertainty(
    basis=np.array([[1.0], [0.5]]),
    rest=np.array([[0.1], [-0.2]]),
    mean=np.array([0.25]),
    covariance=np.array([[0.02]]),
    center=np.array([0.4]),
    sampling=np.array([[0.01]]),
    doubt=np.array([0.05]),
    freedom=39,
)
"""One axis, along which the second feature counts half."""


@pytest.mark.parametrize(
    "unknown",
    [
        None,
        UNKNOWN,
        replace(UNKNOWN, rest=np.zeros((2, 0)), freedom=None),
        replace(UNKNOWN, divided=np.array([[0.03]])),
        replace(UNKNOWN, shown=(0.5, 1.25)),
    ],
)
def test_round_trip(tmp_path, unknown):
    path, made = tmp_path / "r.json", example(unknown=unknown)
    made.save(path)
    loaded = read_release(path)
    assert loaded.as_dict() == made.as_dict()
    assert loaded.parameter.tolist() == made.parameter.tolist()
    assert loaded.guarantee == made.guarantee
    assert loaded.guarantee.personal


def test_releases_are_equal_if_their_files_are_the_same(tmp_path):
    made = example(unknown=UNKNOWN, on_save=lambda digest: None)
    made.save(tmp_path / "r.json")
    again = read_release(tmp_path / "r.json")
    other = example(unknown=UNKNOWN, parameter=np.array([0.25, -0.2]))
    assert made == again
    assert hash(made) == hash(again)
    assert made != other
    assert again in [other, made]
    assert len({made, again, other}) == 2
    assert made != "a release"


def test_a_person_can_read_it():
    data = example().as_dict()
    assert data["parameter"] == {"x1": 0.25, "x2": -0.1}
    assert data["guarantee"]["epsilon"] == 2.0
    assert data["guarantee"]["unit"] == "voter"
    assert "replaced" in data["guarantee"]["neighbours"]


def signed_again(data):
    content = {key: value for key, value in data.items() if key != "checksum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {**content, "checksum": hashlib.sha256(text.encode()).hexdigest()}


DAMAGES = {
    "missing": lambda u: u.pop("center"),
    "wrong length": lambda u: u.update(mean=[0.1, 0.2]),
    "wrong shape": lambda u: u.update(covariance=[0.02]),
    "basis of another study": lambda u: u.update(basis=[[1.0]]),
    "ragged rest": lambda u: u.update(rest=[[0.1, 0.2], [0.3]]),
    "rest of another study": lambda u: u.update(rest=[[0.1], [0.2], [0.3]]),
    "words": lambda u: u.update(doubt=["much"]),
    "too long a number": lambda u: u.update(doubt=[10**400]),
    "freedom in words": lambda u: u.update(freedom="many"),
    "nothing": lambda u: u.clear(),
    "doubt below zero": lambda u: u.update(doubt=[-0.05]),
    "variance below zero": lambda u: u.update(sampling=[[-0.01]]),
    "freedom below zero": lambda u: u.update(freedom=-1),
    "divided in another shape": lambda u: u.update(divided=[0.03]),
    "division below zero": lambda u: u.update(divided=[[-0.03]]),
    "nothing shown": lambda u: u.update(shown=[0.0, 1.0]),
    "shown the wrong way round": lambda u: u.update(shown=[1.2, 0.8]),
    "shown without an end": lambda u: u.update(shown=[0.8]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_what_is_not_known_must_be_whole(damage):
    data = json.loads(json.dumps(example(unknown=UNKNOWN).as_dict()))
    assert signed_again(data) == data
    damage(data["unknown"])
    with pytest.raises(CrowdveilError, match="not a complete release") as refusal:
        release_from_dict(signed_again(data))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data["noise"].update(kind="spread", covariance=[[1.0]]),
        lambda data: data["facts"].update(group_voters="x"),
        lambda data: data.update(facts=[]),
    ],
)
def test_noise_of_another_study_and_facts_that_are_none_are_refused(damage):
    data = json.loads(json.dumps(example().as_dict()))
    damage(data)
    with pytest.raises(CrowdveilError, match=r"not a complete release|is damaged") as refusal:
        release_from_dict(signed_again(data))
    assert "\n" not in str(refusal.value)


def test_an_older_format_is_refused_in_one_line():
    data = {**example().as_dict(), "format": "crowdveil release 1"}
    with pytest.raises(CrowdveilError, match="'crowdveil release 1', expected 'crowdveil release 5'") as refusal:
        release_from_dict(signed_again(data))
    assert "\n" not in str(refusal.value)


EDITS = {
    "parameter": lambda d: d["parameter"].update(x1=0.3),
    "epsilon": lambda d: d["guarantee"].update(epsilon=0.1),
    "study": lambda d: d["study"].update(title="another"),
    "unknown": lambda d: d.update(unknown=UNKNOWN.as_dict()),
    "exact": lambda d: d["noise"].update(exact=False),
    "added key": lambda d: d.update(more=1),
    "removed key": lambda d: d.pop("facts"),
    "checksum": lambda d: d.update(checksum="0" * 64),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_an_edited_file_is_refused(edit):
    data = json.loads(json.dumps(example().as_dict()))
    edit(data)
    with pytest.raises(CrowdveilError, match="edited or damaged"):
        release_from_dict(data)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    )
)
def test_foreign_json_is_refused(data):
    with pytest.raises(CrowdveilError, match="not a release"):
        release_from_dict(data)


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", '{"format": "crowdveil release 99"}', "\x00\xff"])
def test_files_that_are_no_releases_are_refused_by_name(tmp_path, content):
    path = tmp_path / "r.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(CrowdveilError, match=r"r\.json"):
        read_release(path)


def test_directory_and_missing_file(tmp_path):
    with pytest.raises(CrowdveilError, match="is a directory"):
        read_release(tmp_path)
    with pytest.raises(CrowdveilError, match="there is no such release file"):
        read_release(tmp_path / "nothing.json")


def test_an_experiment_must_be_allowed_by_name(tmp_path):
    path = tmp_path / "r.json"
    example(exact=False).save(path)
    with pytest.raises(CrowdveilError, match="experiments only"):
        read_release(path)
    assert not read_release(path, allow_experiment=True).exact


def test_a_parameter_that_is_not_finite_cannot_be_written(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        example(parameter=np.array([np.nan, 0.0])).save(tmp_path / "r.json")
    assert list(tmp_path.iterdir()) == []


def test_error_bars_follow_the_noise():
    assert example(noise=EmpiricalNormal(((1.0, 0.0), (0.0, 4.0)))).error_bars == pytest.approx(
        [1.95996, 3.91993], abs=1e-4
    )


def test_intervals_of_a_crowd_cover_noise_sampling_doubt_and_what_was_left_out():
    """Around the measured, not the shrunk: independent errors by their squares, t for sampling, a bound whole."""
    made = example(unknown=UNKNOWN, noise=Gaussian(0.1))
    for k, (axis, rest) in enumerate(((1.0, 0.1), (0.5, 0.2))):
        noise, left_out = (stats.norm.ppf(0.975) * deviation for deviation in (0.1, rest))
        sampling = stats.t(39).ppf(0.975) * 0.1 * axis
        width = math.sqrt(noise**2 + sampling**2 + left_out**2) + 0.05 * axis
        assert made.intervals[k] == pytest.approx([0.4 * axis - width, 0.4 * axis + width])
        assert made.error_bars[k] == pytest.approx(np.abs(made.intervals[k] - made.parameter[k]).max())


@pytest.mark.parametrize(("turn", "size"), [(0.0, 0.1), (0.07, 0.0), (0.4, 0.9)])
def test_an_interval_covers_wherever_a_bounded_error_moves_its_center(turn, size):
    """Moved by b of its deviations, a normal center is within w of the truth with Phi(w - b) - Phi(-w - b) = 0.95."""
    made = example(unknown=replace(UNKNOWN, doubt=np.zeros(1), turn=turn, size=size), noise=Gaussian(0.1))
    still = example(unknown=replace(UNKNOWN, doubt=np.zeros(1)), noise=Gaussian(0.1))
    for k, axis in enumerate((1.0, 0.5)):
        wide, exact = (np.ptp(one.intervals[k]) / 2 for one in (made, still))
        deviation = exact / stats.norm.ppf(0.975)
        moved = math.hypot(turn * axis, size * 0.4 * axis) / deviation
        covered = stats.norm.cdf(wide / deviation - moved) - stats.norm.cdf(-wide / deviation - moved)
        assert covered == pytest.approx(0.95, abs=1e-4)


@pytest.mark.parametrize(("center", "ends"), [(0.4, (0.16, 1.2)), (-0.4, (-1.2, -0.16)), (0.1, (-0.2, 0.6))])
def test_an_interval_covers_whatever_the_dilemmas_may_have_shown_of_the_preference(center, ends):
    """Without it, the interval is the center with 0.2 to either side; they showed half of it, or a quarter more."""
    shown = replace(UNKNOWN, rest=np.zeros((2, 1)), sampling=np.zeros((1, 1)), doubt=np.array([0.2]), shown=(0.5, 1.25))
    made = example(unknown=replace(shown, center=np.array([center])), noise=Gaussian(1e-12))
    assert made.intervals[0] == pytest.approx(ends)
    parts = made.error_parts()
    assert parts["model"].to_list() == pytest.approx(np.ptp(made.intervals, axis=1) / 2)


def test_a_release_says_where_nothing_can_be_told_from_zero():
    """The parameter is 0.4 and 0.2 along two features: beyond 1.96 deviations of the noise, or not."""
    seen, unseen = (example(parameter=np.array([0.4, 0.2]), noise=Gaussian(deviation)) for deviation in (0.2, 0.21))
    assert seen.no_leaning_sentence is None
    assert unseen.no_leaning_sentence is not None
    assert unseen.no_leaning_sentence.startswith("Every interval includes zero")
    assert "probability" not in unseen.no_leaning_sentence  # None is stated of a paper's society.
    crowds = example(unknown=UNKNOWN, noise=Gaussian(0.3))
    assert crowds.no_leaning_sentence is not None
    assert "A probability from it tells more of what is usual" in crowds.no_leaning_sentence


def test_the_parts_of_the_error_are_the_bars_that_each_cause_alone_would_have():
    """Normal noise has a bar of 1.96 deviations; each cause alone is a release in which all others are zero."""
    none = replace(UNKNOWN, rest=np.zeros((2, 1)), sampling=np.zeros((1, 1)), doubt=np.zeros(1), freedom=None)
    rest = np.array([[0.1], [0.2]])
    of_model = {"doubt": np.array([0.02]), "turn": 0.03, "size": 0.04}
    whole = example(unknown=replace(none, rest=rest, sampling=np.array([[0.04]]), **of_model), noise=Gaussian(0.1))
    parts = whole.error_parts()
    assert parts["name"].to_list() == list(whole.study.feature_names)
    quantile = stats.norm.ppf(0.975)
    assert parts["noise"].to_list() == pytest.approx([quantile * 0.1] * 2)
    assert parts["left_out"].to_list() == pytest.approx([quantile * 0.1, quantile * 0.2])
    assert parts["sampling"].to_list() == pytest.approx([quantile * 0.2, quantile * 0.1])
    alone = example(unknown=replace(none, **of_model), noise=Gaussian(1e-12))
    assert parts["model"].to_list() == pytest.approx(np.ptp(alone.intervals, axis=1) / 2)
    widths = parts["half_width"].to_numpy()
    assert widths == pytest.approx(np.ptp(whole.intervals, axis=1) / 2)
    independent = np.sqrt(sum(parts[name].to_numpy() ** 2 for name in ("noise", "sampling", "left_out")))
    assert (independent < widths).all()
    assert (widths < independent + parts["model"].to_numpy()).all()


def test_all_of_the_error_of_a_paper_s_society_is_noise():
    parts = example(noise=Gaussian(0.2)).error_parts()
    assert parts["noise"].to_list() == pytest.approx(parts["half_width"].to_list())
    assert parts.select("sampling", "model", "left_out").to_numpy().max() == 0


def test_values_along_factors_leave_out_what_was_measured_beside_them():
    """Two axes, of which no factor looks along the second: its preference, noise and doubt are not the factor's."""
    basis = np.array([[1.0, 0.5], [0.0, 1.0]])
    two = replace(
        UNKNOWN,
        basis=basis,
        rest=np.zeros((2, 0)),
        mean=np.array([0.4, 0.3]),
        covariance=np.eye(2),
        center=np.array([0.5, 9.0]),
        sampling=np.zeros((2, 2)),
        doubt=np.array([0.0, 7.0]),
        left_out=1,
    )
    directions = np.array([[1.0, 0.0], [0.3, 0.2]])
    along = two.along_factors(directions)
    assert along @ basis == pytest.approx(np.array([[1.0, 0.0], [0.3, 0.0]]))
    assert along @ (basis @ two.mean) == pytest.approx([0.4, 0.12])
    assert [two.margin(row) for row in along] == pytest.approx([0.5, 0.15])
    assert replace(two, left_out=0).along_factors(directions) is directions


def test_a_factor_of_which_the_noise_leaves_nothing_is_not_known(tmp_path):
    """Where the noise exceeds all that a crowd could prefer, the interval is the whole range."""
    study = load_study("moral-machine")
    k = len(study.factors)
    unknown = Uncertainty(
        basis=study.factor_matrix,
        rest=np.zeros((study.dimension, 0)),
        mean=np.zeros(k),
        covariance=np.eye(k),
        center=np.full(k, 0.5),
        sampling=np.zeros((k, k)),
        doubt=np.array([0.0] * (k - 1) + [100.0]),
    )
    made = example(study=study, parameter=np.zeros(study.dimension), unknown=unknown, noise=Gaussian(1e-6))
    assert made.known.tolist() == [True] * (k - 1) + [False]
    assert made.factor_intervals[-1] == pytest.approx([-REACH, REACH])
    assert made.factors_to_polars()["known"].to_list() == made.known.tolist()
    assert made._repr_html_().count("not known") == 1
    page = tmp_path / "page.html"
    made.page(page)
    assert page.read_text(encoding="utf-8").count('<td role="cell" class="number">not known</td>') == 1


def test_a_feature_that_the_study_never_varies_is_not_known(tmp_path):
    one_axis = replace(UNKNOWN, basis=np.array([[1.0], [0.0]]), rest=np.array([[0.1], [0.0]]))
    made = example(parameter=np.array([0.25, 0.0]), unknown=one_axis)
    assert made.features_known.tolist() == [True, False]
    assert made.error_bars[0] > 0
    written = made.as_dict()
    assert written["error_bars"] == {"x1": made.error_bars[0], "x2": None}
    assert written["intervals"] == {"x1": made.intervals[0].tolist(), "x2": None}
    table = made.to_polars()
    assert table.select("error_bar", "low", "high").row(1) == (None, None, None)
    assert table["error_bar"].to_list()[0] == made.error_bars[0]
    assert "0.000</td><td>not known</td>" in made._repr_html_()
    labels = [label.get_text() for label in made.plot().axes[0].get_yticklabels()]
    assert labels == [f"{made.study.features[1].label} (not known)", made.study.features[0].label]
    made.save(tmp_path / "r.json")
    assert read_release(tmp_path / "r.json").as_dict() == written
    assert example().features_known.all(), "noise was added to every coordinate of a society"


def test_a_release_shows_itself_in_a_line_a_table_and_a_figure(tmp_path):
    made = example()
    assert "\n" not in repr(made)
    for told in (made.study.title, f"{made.guarantee.voters} voters", made.guarantee.paradigm.name, made.mechanism):
        assert told in repr(made)
    assert "protects nobody" in repr(example(exact=False))
    assert "protects nobody" not in repr(made)
    table = made.to_polars()
    assert table["feature"].to_list() == list(made.study.feature_names)
    assert table["weight"].to_list() == made.parameter.tolist()
    assert made.to_pandas()["error_bar"].tolist() == made.error_bars.tolist()
    assert table.select("low", "high").rows() == [tuple(row) for row in made.intervals.tolist()]
    for feature, weight in zip(made.study.features, made.parameter, strict=True):
        assert f"<td>{feature.label}</td><td>{weight:+.3f}</td>" in made._repr_html_()
    figure = made.plot(tmp_path / "plot.svg")
    assert sorted(bar.get_width() for bar in figure.axes[0].patches) == sorted(made.parameter.tolist())
    assert made.study.features[0].label in (tmp_path / "plot.svg").read_text(encoding="utf-8")
    assert figure._repr_png_().startswith(b"\x89PNG"), "a notebook shows it"
    made.page(tmp_path / "page.html")
    assert made.study.title in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_figure_shows_the_factors_above_the_features():
    study = load_study("moral-machine")
    theta = np.array([0.3, 0.1, 0.4, 0.0, 0.02, 0.2, 0.5, -0.05, -0.1])
    made = example(study=study, parameter=study.factor_matrix @ theta)
    assert made.factor_values == pytest.approx(theta, abs=1e-9)
    (axes,) = made.plot().axes
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == pytest.approx([*sorted(made.parameter), *sorted(theta)], abs=1e-9)
    shown = made.factors_to_polars()
    assert shown["factor"].to_list() == [factor.name for factor in study.factors]
    assert shown["weight"].to_list() == pytest.approx(theta, abs=1e-9)
    assert (shown["high"] - shown["weight"]).to_list() == pytest.approx(made.factor_bars)
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[-2:] == ["Age: children", "Law: crossing on green"]
