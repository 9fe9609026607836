"""A release from batches: its promise follows from how many reports of each batch are in it, and is checked again."""

from __future__ import annotations

import hashlib
from decimal import ROUND_CEILING, Decimal

import pytest
from tests.relay.conftest import SQLITE, Start, running_pair

from crowdveil.errors import CrowdveilError
from crowdveil.pages.plain_words import guarantee_sentences
from crowdveil.pages.release_page import release_page
from crowdveil.privacy.shuffling import amplified_epsilon
from crowdveil.releases import Release, release_from_dict
from crowdveil.service.poll_release import make_release, preview_release
from crowdveil.service.public.result import read_result
from crowdveil.service.public.words import words_of
from crowdveil.study.plain_data import canonical_json
from crowdveil.study.translations import INTERFACE_LANGUAGES


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release from batches of 300 and 330, of which three reports cannot be read."""
    folder = tmp_path_factory.mktemp("released")
    addresses = [f"sqlite:///{folder / name}.sqlite" for name in ("host", "relay")]
    with running_pair(*addresses, batch=300) as pair:
        pair.vote(627)
        rows = [pair.sealed(1)[0][:-1] + b"x" for _ in range(3)]
        for number, sealed in enumerate(rows):
            assert pair.send(sealed, "A" * 20 + "BCD"[number] + "A").status_code == 201
        assert pair.forwarder.round() == 1
        pair.host.polls.close(pair.name)
        assert pair.forwarder.round() == 1
        assert preview_release(pair.host, pair.name).voters == 627
        stored = make_release(pair.host, pair.name, pair.forwarder.today())
        return stored.read()


def test_the_promise_follows_from_the_batches_that_arrived_smallest_first(released: Release) -> None:
    promise = released.relayed
    assert promise is not None
    assert sum(promise.batches) == released.guarantee.voters == 627
    assert len(promise.batches) == 2
    counted = promise.batches[0] * 9 // 10
    expected = amplified_epsilon(3.0, counted, 1e-6, one_bit=True)
    assert expected <= promise.epsilon <= expected + 1e-6
    assert released.guarantee.epsilon.value == 3.0
    assert f"behind a relay {promise.epsilon:.4g} with delta 1e-06" in repr(released)


def test_a_file_that_claims_more_is_refused(released: Release) -> None:
    data = released.as_dict()
    assert release_from_dict(data).relayed == released.relayed
    told = data["facts"]["relayed"]
    for change, why in (
        ({"epsilon": told["epsilon"] / 2}, "do not rely on it"),
        ({"batches": [627]}, None),
        ({"batches": [300, 300]}, "not those of its voters"),
        ({"local_epsilon": 2.0}, "not those of its voters"),
        ({"batches": "many"}, "cannot be read|whole number|batches"),
    ):
        changed = {**data, "facts": {**data["facts"], "relayed": {**told, **change}}}
        content = {key: value for key, value in changed.items() if key != "checksum"}
        changed["checksum"] = hashlib.sha256(canonical_json(content).encode()).hexdigest()
        if why is None:  # A larger batch promises more than this epsilon: nothing is claimed that does not hold.
            assert release_from_dict(changed).relayed is not None
            continue
        with pytest.raises(CrowdveilError, match=why):
            release_from_dict(changed)


def test_pages_say_the_three_lines(released: Release) -> None:
    assert released.relayed is not None
    sentences = guarantee_sentences(released)
    assert set(released.relayed.lines) <= set(sentences)
    assert "The relay alone: that somebody took part" in release_page([released])
    up = Decimal(released.relayed.epsilon).quantize(Decimal("0.0001"), ROUND_CEILING)
    for language in INTERFACE_LANGUAGES:
        promises = " ".join(read_result(released, words_of(language)).promises)
        assert "1e-06" in promises
        assert f"{up.normalize()}" in promises
        assert "{" not in promises


@SQLITE
def test_a_release_needs_a_batch(start: Start) -> None:
    pair = start(batch=10)
    pair.vote(9)
    pair.host.polls.close(pair.name)
    pair.forwarder.round()
    with pytest.raises(CrowdveilError, match="at least"):
        make_release(pair.host, pair.name, pair.forwarder.today())
