"""Effects from ballots to a file: charged, exact where they should be, by group, and refused in one line."""

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.real_data import (
    FAIRNESS,
    FAIRNESS_ABOUT,
    MORAL_MACHINE,
    MORAL_MACHINE_ABOUT,
    with_fairness,
    with_moral_machine,
)

import crowdveil as cv
from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import Categories
from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.privacy.epsilon import Amount
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.publish.effects import preview_together, publish_together
from crowdveil.publish.effects_request import read_weights
from crowdveil.sources.moral_machine.importing import import_moral_machine

STUDY = cv.load_study("synthetic-2")


def crowd(voters=60, groups=("a", "b"), seed=1):
    """Return voters with four records each: half of them prefer more of the first feature nearly always."""
    rng = np.random.default_rng(seed)
    names = np.repeat([f"v{i}" for i in range(voters)], 4)
    left, right = np.abs(rng.normal(size=(2, len(names), 2)))
    said = np.repeat(np.arange(voters) % len(groups), 4)
    wants = np.where(said == 0, 3.0, 0.0) * (left[:, 0] - right[:, 0]) + rng.normal(size=len(names))
    return Ballots.from_arrays(
        STUDY, names.tolist(), left, right, wants > 0, about={"team": [groups[g] for g in said.tolist()]}
    )


@pytest.fixture
def ledger(tmp_path):
    return cv.Ledger.create(tmp_path / "l", 2)


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    path = tmp_path_factory.mktemp("mm") / "mm.parquet"
    mapping = Path(__file__).parents[2] / "examples/moral-machine-about.toml"
    import_moral_machine(MORAL_MACHINE, path, about=MORAL_MACHINE_ABOUT, mapping=mapping)
    return cv.read_ballots(path)


@pytest.mark.parametrize("name", PARADIGMS)
def test_effects_are_charged_written_and_read_again(name, ledger, tmp_path):
    made = cv.effects(crowd(), name, epsilon=1, ledger=ledger, by="team")
    made.save(tmp_path / "e.json")
    (account,) = ledger.statement().accounts
    (entry,) = account.entries
    assert (str(entry.charged), entry.purpose) == ("1", f"{name} effects by team")
    again = cv.read_effects(tmp_path / "e.json")
    assert again == made
    assert len({again, made, replace(made, facts={})}) == 2
    assert again.exact
    assert again.ledger == {"id": ledger.id, "entry": entry.id}
    assert ("groups_not_protected" in again.facts) == (name[0] in "ra")
    assert ("groups_protected" in again.facts) == (name[0] == "v")
    with pytest.raises(CrowdveilError, match="it holds effects, which decide nothing"):
        cv.read_release(tmp_path / "e.json")
    with pytest.raises(BudgetExceeded):
        cv.effects(crowd(), name, epsilon=1.5, ledger=ledger)


def test_a_plan_does_not_tell_how_many_records_a_voter_has():
    """With 100 voters at epsilon 3, whether squares are bought once turned on the 562nd record."""
    machine = cv.load_study("moral-machine")
    few = cv.simulate_crowd(machine, 100)
    planned = [
        cv.preview_effects(
            Ballots.from_differences(machine, np.append(np.arange(100), records), few.differences[:records]),
            "vlcp",
            epsilon=3,
        )
        for records in (200, 561, 562, 1300)
    ]
    assert len({(one.mechanism.blocks, one.mechanism.squares) for one in planned}) == 1
    assert len({tuple(one.expected_half_widths) for one in planned}) == 1


@pytest.mark.parametrize("paradigm", ["vlcp", "rlcp", "vldp", "rldp"])
def test_a_plan_does_not_tell_which_types_of_scenario_occur(paradigm):
    crowd = cv.simulate_crowd("moral-machine", 50)
    assert crowd.scenarios is not None
    usual = ["Gender"] * crowd.records
    planned = [
        cv.preview_effects(replace(crowd, scenarios=Categories.encode(types)), paradigm, epsilon=0.1)
        for types in (usual, [*usual[1:], "Age"], [*usual[1:], "of its own"], [*usual[1:], None])
    ]
    assert len({one.contrasts for one in planned}) == 1
    assert "pairs of the scenario Age" in planned[0].contrasts
    assert len({getattr(one.mechanism, "blocks", None) for one in planned}) == 1
    assert len({tuple(one.expected_half_widths) for one in planned}) == 1


def test_a_budget_that_does_not_cover_both_is_refused_with_its_numbers(ledger, tmp_path):
    asked = preview_together(crowd(), "rlcp", epsilon=2.5)
    with pytest.raises(BudgetExceeded, match=r"both together: requested epsilon 2\.5, remaining 2 of 2") as refusal:
        publish_together(crowd(), asked, ledger, tmp_path / "r.json", tmp_path / "e.json")
    assert (refusal.value.requested, refusal.value.remaining) == (Decimal("2.5"), Decimal(2))
    assert ledger.statement().accounts == ()


def test_both_in_one_file_are_refused_before_anything_is_spent(ledger, tmp_path):
    asked = preview_together(crowd(), "rlcp", epsilon=1)
    with pytest.raises(CrowdveilError, match="give them two names"):
        publish_together(crowd(), asked, ledger, tmp_path / "r.json", tmp_path / "." / "r.json")
    assert ledger.statement().accounts == ()


@pytest.mark.parametrize("missing", [0, 1])
def test_a_ledger_of_rhos_adds_up_both_its_own_way(missing, tmp_path):
    """0.7 and 0.3 of epsilon 0.12 cost 0.084^2 / 2 + 0.036^2 / 2 = 0.004176 together, not 0.12^2 / 2 = 0.0072."""
    ledger = cv.Ledger.create(tmp_path / "rhos", 1, 1e-6)
    asked = preview_together(crowd(), "rlcp", epsilon="0.12")
    budget = ledger.statement().budget
    remaining = Amount(4176 - missing)
    ledger.charge(replace(asked.preferences.charge, rho=budget - remaining))
    previewed = asked.cost(ledger)
    assert (previewed.requested, previewed.remaining, previewed.fits) == (Amount(4176), remaining, not missing)
    before = ledger.statement()
    paths = tmp_path / "r.json", tmp_path / "e.json"
    if missing:
        said = r"both together: requested rho 0\.004176, remaining 0\.004175 of"
        with pytest.raises(BudgetExceeded, match=said):
            publish_together(crowd(), asked, ledger, *paths)
        assert ledger.statement() == before
        assert not any(path.exists() for path in paths)
    else:
        publish_together(crowd(), asked, ledger, *paths)
        (account,) = ledger.statement().accounts
        assert [entry.charged for entry in account.entries[1:]] == [Amount(3528), Amount(648)]
        assert account.remaining == Amount(0)


def test_a_changed_file_is_refused(ledger, tmp_path):
    path = tmp_path / "e.json"
    cv.effects(crowd(), "rlcp", epsilon=1, ledger=ledger).save(path)
    data = json.loads(path.read_text())
    data["groups"][0]["effects"][0]["estimate"] = 0.5
    path.write_text(json.dumps(data))
    with pytest.raises(CrowdveilError, match="its checksum does not match"):
        cv.read_effects(path)


def test_an_experiment_is_allowed_by_name_only(tmp_path):
    made = cv.effects_for_experiments(crowd(), "alcp", epsilon=1, seed=3)
    made.save(tmp_path / "e.json")
    with pytest.raises(CrowdveilError, match="protects nobody"):
        cv.read_effects(tmp_path / "e.json")
    assert cv.read_effects(tmp_path / "e.json", allow_experiment=True) == made
    assert made == cv.effects_for_experiments(crowd(), "alcp", epsilon=1, seed=3)


def test_the_table_is_tidy_and_says_what_is_not_known(tmp_path):
    made = cv.effects_for_experiments(crowd(voters=10), "vldp", epsilon=0.1, seed=1, by="team")
    for suffix, read in ((".csv", pl.read_csv), (".parquet", pl.read_parquet)):
        made.effects.write_table(tmp_path / f"e{suffix}")
        table = read(tmp_path / f"e{suffix}")
        assert table.shape == (4, 11)
        assert {"factor", "level", "estimate", "standard_error", "low", "high", "voters"} <= set(table.columns)
        unknown = table.filter(pl.col("estimate").is_null())
        assert len(unknown)
        assert unknown["low"].to_list() == [-1.0] * len(unknown)
    assert made.to_pandas()["group"].tolist() == table["group"].to_list()
    figure = made.plot(tmp_path / "e.svg")
    assert [len(axes.patches) for axes in figure.axes] == [len(table) - len(unknown)], "a bar for each known effect"
    assert "<svg" in (tmp_path / "e.svg").read_text(encoding="utf-8")
    with pytest.raises(CrowdveilError, match=r"must end in \.csv or \.parquet"):
        made.effects.write_table(tmp_path / "e.xls")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"by": "height"}, "do not say what voters' 'height' is; the questions about them are team"),
        ({"paradigm": "vlxx"}, "no paradigm"),
        ({"epsilon": 0}, "epsilon"),
        ({"smallest": -1}, "whole number of voters"),
    ],
)
def test_wrong_requests_get_one_line_and_spend_nothing(change, said, ledger):
    asked = {"paradigm": "rlcp", "epsilon": 1, "by": "team", "smallest": 0} | change
    with pytest.raises(CrowdveilError, match=said) as refused:
        cv.effects(crowd(), asked.pop("paradigm"), ledger=ledger, **asked)
    assert "\n" not in str(refused.value)
    assert not ledger.statement().accounts


@pytest.mark.parametrize("name", ["rlcp", "vlcp"])
def test_one_voter_for_each_group_is_refused(name, ledger):
    alone = crowd(voters=6, groups=tuple("abcdef"))
    with pytest.raises(CrowdveilError, match="6 levels for 6 voters"):
        cv.effects(alone, name, epsilon=1, ledger=ledger, by="team")


def test_a_public_group_of_one_voter_is_refused_by_name(ledger):
    lonely = Ballots.from_arrays(
        STUDY,
        ["x"] * 2 + [f"v{i}" for i in range(9)],
        [[1, 0]] * 11,
        [[0, 1]] * 11,
        [1] * 11,
        about={"team": ["c"] * 2 + ["a", "b"] * 4 + ["a"]},
    )
    with pytest.raises(CrowdveilError, match="the group 'c' of 'team' has 1 voter, and 2 are the least"):
        cv.effects(lonely, "rlcp", epsilon=1, ledger=ledger, by="team")


def test_small_groups_are_merged_by_their_noisy_count():
    groups = ("a", "a", "a", "a", "a", "a", "b", "c")
    made = cv.effects_for_experiments(
        crowd(voters=800, groups=groups), "vlcp", epsilon=10, seed=2, by="team", smallest=200
    )
    assert [one.label for one in made.effects.groups] == ["a", "all others"]
    assert made.effects.groups[1].voters == pytest.approx(200, abs=10)


def test_weights_are_public_and_bounded(tmp_path):
    """Whoever has no weight does not count: with the first half alone, the effect is that half's."""
    ballots = crowd(voters=400)
    path = tmp_path / "w.csv"
    rows = "\n".join(f"v{i},{2.0 if i % 2 == 0 else 0.0}" for i in range(400))
    path.write_text(f"voter,weight\n{rows}\n")
    weights = read_weights(path, 4)
    made = cv.effects_for_experiments(ballots, "rlcp", epsilon=10, seed=1, weights=weights)
    first = cv.exact_effects(ballots, "team").effect(STUDY.factors[0].name, "a")
    effect = made.effects.effect(STUDY.factors[0].name)
    assert effect.estimate == pytest.approx(first.estimate, abs=0.02)
    assert effect.pairs == pytest.approx(2 * first.pairs, rel=0.05)
    assert made.facts["weights"] == "public, at most 4"
    with pytest.raises(CrowdveilError, match="weights run from 0 to the stated bound 1"):
        read_weights(path, 1)
    with pytest.raises(CrowdveilError, match="weights need a trusted aggregator"):
        cv.effects_for_experiments(ballots, "aldp", epsilon=1, seed=1, weights=weights)
    with pytest.raises(CrowdveilError, match="1 of 400 voters have no weight, the first is 'v0'"):
        cv.preview_effects(ballots, "rlcp", epsilon=1, weights=cv.Weights({f"v{i}": 1.0 for i in range(1, 400)}, 1))


def test_weights_and_their_bound_may_be_fractions():
    ballots = crowd()
    given = {f"v{i}": Fraction(1, 3) for i in range(60)}
    same, written = (
        cv.effects_for_experiments(ballots, "rlcp", epsilon=1, seed=1, weights=cv.Weights(weights, bound))
        for weights, bound in ((given, Fraction(1, 3)), (dict.fromkeys(given, 1 / 3), 1 / 3))
    )
    assert same == written
    with pytest.raises(
        CrowdveilError, match=r"the weight of voter 'v0' is 1: weights run from 0 to .* bound 0\.333333"
    ):
        cv.Weights({"v0": 1}, Fraction(1, 3))


@pytest.mark.parametrize("paradigm", ["vlcp", "rlcp"])
@pytest.mark.parametrize("bound", [0.5, 5])
def test_a_group_of_weighted_voters_counts_what_its_weights_say(paradigm, bound):
    """Two groups of 200 voters, each of whom counts as half a voter: neither is smaller than 80, both than 120."""
    ballots = crowd(400)
    weights = cv.Weights(dict.fromkeys(ballots.voter_names(), 0.5), bound)

    def groups(smallest):
        made = cv.effects_for_experiments(
            ballots, paradigm, epsilon=20, seed=1, by="team", weights=weights, smallest=smallest
        )
        return {group.label: group.voters for group in made.effects.groups}

    assert groups(80) == {"a": pytest.approx(100, abs=10), "b": pytest.approx(100, abs=10)}
    assert list(groups(120).values()) == [pytest.approx(200, abs=10)]


def test_a_bound_of_weights_makes_the_noise_larger():
    """Equal weights of 1 under a bound of 10: the noise covers somebody who counts ten times."""
    ballots, ones = crowd(voters=400), {f"v{i}": 1.0 for i in range(400)}
    widths = []
    for bound in (1, 10):
        made = cv.effects_for_experiments(ballots, "rlcp", epsilon=1, seed=1, weights=cv.Weights(ones, bound))
        widths.append(made.effects.effect(STUDY.factors[0].name).standard_error)
    assert widths[1] > 1.5 * widths[0]


@with_moral_machine
def test_without_privacy_they_agree_with_a_computation_on_the_raw_file(people):
    """polars on the rows of the public file: no part of crowdveil but the names of the factors."""
    rows = pl.read_csv(MORAL_MACHINE, infer_schema_length=0, null_values=["", "NA"])
    counts = pl.col("Saved", "Intervention", "Barrier", "CrossingSignal", "NumberOfCharacters", "Woman", "Man")
    rows = rows.with_columns(counts.cast(pl.Float64))
    females = ("Woman", "OldWoman", "Girl", "LargeWoman", "FemaleExecutive", "FemaleAthlete", "FemaleDoctor")
    males = ("Man", "OldMan", "Boy", "LargeMan", "MaleExecutive", "MaleAthlete", "MaleDoctor")
    others = ("Dog", "Cat", "Stroller", "Pregnant", "Homeless", "Criminal")
    number = {name: pl.col(name).cast(pl.Float64) for name in (*females, *males, *others)}
    legality = pl.when(pl.col("CrossingSignal") == 1).then(1.0).when(pl.col("CrossingSignal") == 2).then(-1.0)
    rows = rows.with_columns(
        gender=sum(number[name] for name in females) - sum(number[name] for name in males),
        species=pl.col("NumberOfCharacters") - 2 * (number["Dog"] + number["Cat"]),
        number=pl.col("NumberOfCharacters"),
        law=legality.otherwise(0.0),
        intervention=pl.col("Intervention"),
        passenger=pl.col("Barrier"),
        age=number["Stroller"] + number["Boy"] + number["Girl"] - number["OldMan"] - number["OldWoman"],
        fitness=number["FemaleAthlete"] + number["MaleAthlete"] - number["LargeWoman"] - number["LargeMan"],
        status=sum(number[name] for name in ("MaleExecutive", "FemaleExecutive", "MaleDoctor", "FemaleDoctor"))
        + number["Pregnant"]
        - number["Homeless"]
        - number["Criminal"],
    )
    factors = ("gender", "species", "number", "law", "intervention", "passenger", "age", "fitness", "status")
    assert set(factors) == {factor.name for factor in people.study.factors}
    spared, killed = (rows.filter(pl.col("Saved") == saved) for saved in (1, 0))
    pairs = spared.join(killed, on="ResponseID", suffix="_other")
    same = (pl.col("ScenarioType") == pl.col("ScenarioTypeStrict")) & (
        pl.col("ScenarioType_other") == pl.col("ScenarioTypeStrict_other")
    )
    scenarios = {"gender": "Gender", "species": "Species", "number": "Utilitarian", "age": "Age"}
    scenarios |= {"fitness": "Fitness", "status": "Social Status"}
    found = cv.exact_effects(people)
    for factor in factors:
        about = pairs.filter(same & (pl.col("ScenarioType") == scenarios[factor])) if factor in scenarios else pairs
        signs = about.select((pl.col(factor) - pl.col(f"{factor}_other")).sign())[factor]
        signs = signs.filter(signs != 0)
        effect = found.effect(factor)
        assert effect.pairs == len(signs)
        assert effect.estimate == pytest.approx(signs.mean(), abs=1e-12)


@with_moral_machine
def test_women_and_men_differ_on_gender_and_species(people):
    """Shares of .628 and .573 spare the female side, .807 and .860 people: without privacy, and at RLCP epsilon 1."""
    exact = cv.exact_effects(people, "gender")
    for factor, women, men in (("gender", 0.628, 0.573), ("species", 0.807, 0.860)):
        for label, share in (("women", women), ("men", men)):
            assert (1 + exact.effect(factor, label).estimate) / 2 == pytest.approx(share, abs=5e-4)
    private = cv.effects_for_experiments(people, "rlcp", epsilon=1, seed=1, by="gender").effects
    for found in (exact, private):
        told = {one.factor: one.estimate for one in found.differences if one.told_apart}
        assert told["gender"] > 0 > told["species"]
    assert {factor.name: said for factor, said in exact.verdicts()}["number"] == "agree: all prefer more lives"


@with_moral_machine
def test_random_halves_of_one_crowd_do_not_differ(people):
    """In 40 random halves, fewer than 5 % of factors are told apart: by noise and sampling together, hardly any."""
    rng, told = np.random.default_rng(2), 0
    for seed in range(40):
        codes = rng.permutation(people.voters) % 2
        halves = Ballots(
            people.study,
            people.offsets,
            people.dilemmas,
            people.choices,
            scenarios=people.scenarios,
            about={"half": Categories(("one", "other"), codes.astype(np.int16))},
        )
        made = cv.effects_for_experiments(halves, "rlcp", epsilon=1, seed=seed, by="half")
        told += sum(one.told_apart for one in made.effects.differences)
    assert told <= 0.05 * 40 * 9


@pytest.mark.parametrize("name", PARADIGMS)
def test_a_third_answer_counts_as_half_of_either(name):
    """Everybody prefers more of the first feature in one of two pairs, and would toss a coin in the other: 1/2."""
    study = replace(STUDY, indifference="Toss a coin")
    names = np.repeat([f"v{i}" for i in range(2000)], 2).tolist()
    ballots = Ballots.from_arrays(study, names, [[1, 0]] * 4000, [[0, 0]] * 4000, [1, 0] * 2000)
    effect = cv.effects_for_experiments(ballots, name, epsilon=5, seed=2).effects.effect(study.factors[0].name)
    assert effect.estimate == pytest.approx(0.5, abs=0.1)
    assert effect.low <= 0.5 <= effect.high


@with_fairness
def test_fairness_by_party_agrees_with_a_computation_on_the_raw_file():
    """polars on the rows of the public file: whom Democrats and Republicans chose, of two applicants by their party."""
    mapping = Path(__file__).parents[2] / "examples/fairness-mapping.toml"
    ballots = cv.read_table(FAIRNESS, mapping=mapping, about=FAIRNESS_ABOUT)
    found = cv.exact_effects(ballots, "party")
    rows = pl.read_csv(FAIRNESS, infer_schema_length=0).drop_nulls(["responseid", "question_index", "answer"])
    party = pl.col("Political Affiliation").replace_strict({"Democrat": 1, "Republican": -1}, default=0)
    rows = rows.with_columns(leaning=party, answer=pl.col("answer").cast(pl.Float64, strict=False))
    pair = ["responseid", "question_index"]
    chosen, other = (rows.filter(pl.col("answer") == said) for said in (1, 0))
    pairs = chosen.join(other, on=pair, suffix="_other")
    about = pl.read_csv(FAIRNESS_ABOUT, infer_schema_length=0)
    pairs = pairs.join(about.select("responseid", "demog_political"), on="responseid")
    for label in ("Democrat", "Republican"):
        hers = pairs.filter(pl.col("demog_political") == label)
        signs = (hers["leaning"] - hers["leaning_other"]).sign()
        signs = signs.filter(signs != 0)
        effect = found.effect("party", label)
        assert effect.pairs == len(signs)
        assert effect.estimate == pytest.approx(signs.mean(), abs=1e-12)
    assert found.effect("crime", "Democrat").low > 0 < found.effect("crime", "Republican").low
