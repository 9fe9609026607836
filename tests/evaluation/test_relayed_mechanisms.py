"""Whole voters protected through a relay, beside the trusted aggregator: on crowds, and on the public file."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.program import answer, crowdveil, refused
from tests.real_data import MORAL_MACHINE, with_moral_machine
from tests.relay.conftest import running_pair

from crowdveil.ballots.ballot_file import read_ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.evaluation import comparison
from crowdveil.evaluation.comparison import relayed_mechanisms
from crowdveil.evaluation.comparison_runs import (
    ComparisonEntry,
    ComparisonRun,
    ComparisonTask,
    EntryResult,
    collect,
    of_file,
    runs_of,
)
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.one_bit import OneBit
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.privacy.shuffling import amplified_epsilon
from crowdveil.protocol.report import write_reports
from crowdveil.protocol.submission import new_token, report_id
from crowdveil.relay.store import SealedRow
from crowdveil.releases import Release
from crowdveil.service.poll_release import make_release
from crowdveil.study.bundled import load_study

VOTERS = 1573
WORDS = ("compare", "--voters", 300, "--records", 4, "--features", 2, "--crowds", 2, "--paradigm", "vlcp")


def test_the_local_epsilon_keeps_the_epsilon_asked_for_and_no_larger_one_does() -> None:
    study = load_study("moral-machine")
    (one,) = relayed_mechanisms(study, VOTERS, [Epsilon(1)])
    assert one.relayed is not None
    assert one.entry.epsilon == one.relayed.local
    assert amplified_epsilon(one.relayed.local.value, VOTERS * 9 // 10, 1e-6, one_bit=one.relayed.bits == 1) <= 1
    assert relayed_mechanisms(study, 3, [Epsilon("0.001")]) == []


@pytest.mark.usefixtures("few_crowds_here")
def test_the_command_has_a_table_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured once, and told in JSON and in words. Processes are tested with the comparison itself."""

    @cache
    def measured(runs: tuple[ComparisonRun, ...]) -> dict[ComparisonEntry, EntryResult]:
        return collect(pl.concat([run.measure(range(1)) for run in runs]))

    monkeypatch.setattr(comparison, "carry_out", lambda runs, workers, tell: measured(tuple(runs)))
    data = answer(*WORDS, "--epsilon", 1, "--relay", "--workers", 1)
    (row,) = [row for row in data["rows"] if row["relayed"] is not None]
    assert (row["paradigm"], row["mechanism"]) == ("vldp", "one-bit")
    assert row["relayed"]["epsilon"] <= 1 < row["epsilon"] == row["relayed"]["local_epsilon"]
    assert "vldp through a relay" in crowdveil(*WORDS, "--epsilon", 1, "--relay", "--workers", 1).stdout
    assert measured.cache_info().hits == 1
    refused(crowdveil("compare", "--personal", "--relay", "--paradigm", "vldp"), "--relay is for one epsilon for all")


@pytest.fixture(scope="module")
def real_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("real") / "mm.parquet"
    crowdveil("import", "moral-machine", MORAL_MACHINE, "--out", path)
    return path


@with_moral_machine
@pytest.mark.usefixtures("few_crowds_unless_slow")
@pytest.mark.parametrize("splits", [3, pytest.param(6, marks=pytest.mark.slow)])
def test_one_batch_of_the_public_file_predicts_72_percent_at_epsilon_1(real_file: Path, splits: int) -> None:
    population = of_file(real_file)
    assert population.voters == VOTERS
    (one,) = relayed_mechanisms(population.study, population.voters, [Epsilon(1)])
    assert one.relayed is not None
    assert one.relayed.epsilon <= 1
    assert one.relayed.delta == 1e-6
    runs = runs_of(population, splits, 0, [ComparisonTask(one.entry, thorough=True)])
    measured = collect(pl.concat([run.measure(range(1)) for run in runs]))
    assert measured[one.entry].quality.mean() >= 0.72


@pytest.mark.slow
@with_moral_machine
def test_the_public_file_through_a_real_relay(real_file: Path, tmp_path: Path) -> None:
    """Real reports, sealed, handed over in one batch, opened, released: with noise from the operating system."""
    everyone, rng = read_ballots(real_file), np.random.default_rng(4)
    order = rng.permutation(everyone.voters)
    predicted = []
    for attempt in range(4):
        release = released(everyone.take(order[:VOTERS]), tmp_path / str(attempt))
        assert release.relayed is not None
        assert release.relayed.batches == (VOTERS,)
        assert release.relayed.epsilon <= 1
        worth = everyone.take(order[VOTERS:]).differences @ release.parameter
        predicted.append(float(((worth > 0) + 0.5 * (worth == 0)).mean()))
    assert np.mean(predicted) >= 0.70  # one split, and one release varies by 0.01


def released(ballots: Ballots, folder: Path) -> Release:
    folder.mkdir()
    addresses = [f"sqlite:///{folder / name}.sqlite" for name in ("host", "relay")]
    rules = {"study": "moral-machine", "levels": {"one": "3.05"}, "batch": VOTERS}
    with running_pair(*addresses, **rules) as pair:
        epsilons = Epsilons.same(Epsilon("3.05"), ballots.voters)
        made = OneBit().report(ballots, pair.poll.settings, epsilons, BulkNoise())
        seal = pair.host.batches.key(pair.poll).configuration.seal
        bodies = write_reports(pair.poll.mechanism, pair.poll.study, epsilons, made)
        rows = [SealedRow(pair.name, report_id(new_token()), seal(body)) for body in bodies]
        pair.relay.put(rows, pair.forwarder.today)
        pair.host.polls.close(pair.name)
        assert pair.forwarder.round() == 1
        return make_release(pair.host, pair.name, pair.forwarder.today()).read()
