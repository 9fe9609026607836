"""crowdveil relay: what it takes up, the links that it makes, and mistakes told in one line."""

from __future__ import annotations

import stat
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from tests.program import crowdveil, refused
from tests.relay.conftest import relay_poll

from crowdveil.errors import CrowdveilError
from crowdveil.protocol.submission import is_token, report_id
from crowdveil.relay import schema
from crowdveil.relay.app import make_links, set_up_relay
from crowdveil.relay.store import open_relay_store
from crowdveil.service.app import create_app
from crowdveil.service.server import served_here
from crowdveil.service.service import Service
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store.store import open_store

URL = "https://relay.example"


def test_it_takes_up_the_polls_that_name_it_and_makes_their_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = (
        relay_poll(URL, entry="links", name="mine"),
        relay_poll("https://other.example", name="other"),
    )
    settings = ServiceSettings(data=str(tmp_path / "relay"), public_url=URL)
    with open_store(f"sqlite:///{tmp_path / 'host.sqlite'}") as host:
        host.polls.add(other)
        with served_here(create_app(Service(host))) as url:
            with pytest.raises(CrowdveilError, match="has no poll that names this relay"):
                set_up_relay(settings, url)
            host.polls.add(mine)
            setup = set_up_relay(settings, url)
            key = host.batches.key(mine).configuration.fingerprint
            monkeypatch.setattr("crowdveil.relay.app.serve_relay", lambda *_: None)
            file = tmp_path / "links.csv"
            words = ("--host", url, "--public-url", URL, "--data", settings.data, "--links", "2", "--out", file)
            assert crowdveil("relay", *words).code == 0
        assert [line.partition("#")[0] for line in file.read_text().splitlines()] == ["link", *[f"{url}/p/mine/"] * 2]
        assert stat.S_IMODE(file.stat().st_mode) == 0o600  # Whoever reads a link can vote by it.
        assert [poll.name for poll in setup.polls] == ["mine"]
        links = [urlsplit(link) for link in make_links(settings, url, "mine", 3)]
    assert {f"{link.scheme}://{link.netloc}{link.path}" for link in links} == {f"{url}/p/mine/"}
    tokens = [link.fragment.removeprefix(f"key={key}&ballot=") for link in links]
    assert all(is_token(token) for token in tokens)
    with open_relay_store(settings.database_address) as relay:
        assert [relay.check("mine", report_id(token)) for token in tokens] == [None] * 3
        with pytest.raises(CrowdveilError, match="1 to 100,000 links"):
            relay.create_links("mine", 0)
    # A relay that knows its polls starts while their host is away.
    assert [poll.name for poll in set_up_relay(settings, "http://127.0.0.1:9").polls] == ["mine"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--host", "crowd.example"], "must begin with http"),
        (["--host", "http://127.0.0.1:9", "--links", "5"], "--links NUMBER and --out FILE together"),
        (["--host", "http://127.0.0.1:9", "--links", "5", "--out", "/no/links.csv"], "there is no directory /no"),
        (["--host", "http://127.0.0.1:9", "--pause", "0"], "above 0 seconds"),
    ],
)
def test_mistakes_are_told_in_a_line(words: list[str], told: str, tmp_path: Path) -> None:
    refused(crowdveil("relay", *words, "--data", tmp_path / "relay"), told)


def test_the_relay_s_tables_are_those_of_the_program(tmp_path: Path) -> None:
    with (
        open_relay_store(f"sqlite:///{tmp_path / 'r.sqlite'}") as relay,
        relay.database.engine.connect() as connection,
    ):
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []
