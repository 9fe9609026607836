"""Settings come from options, the environment and a file, in this order."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from crowdveil.errors import CrowdveilError
from crowdveil.service.settings import ServiceSettings, read_settings


def test_what_is_given_first_counts(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('port = 1\nlisten = "::"\nlargest_report = 2048\n', encoding="utf-8")
    environment = {"CROWDVEIL_PORT": "2", "CROWDVEIL_LISTEN": "0.0.0.0", "HOME": "/"}
    made = read_settings({"port": 3, "listen": None}, environment, file)
    assert (made.port, made.listen, made.largest_report) == (3, "0.0.0.0", 2048)
    assert read_settings({}, {}) == ServiceSettings()


def test_worker_processes_get_the_same_settings() -> None:
    made = ServiceSettings(port=99, database="postgresql://x/y", workers=3, public_url="https://vote.example")
    assert read_settings({}, made.as_environment()) == made


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"CROWDVEIL_PORT": "http"}, "CROWDVEIL_PORT must be a whole number"),
        ({"CROWDVEIL_PORT": "65536"}, "65535 or less"),
        ({"CROWDVEIL_PUBLIC_URL": "vote.example"}, "must start with https://"),
        ({"CROWDVEIL_WORKERS": "2"}, "need PostgreSQL"),
        ({"CROWDVEIL_WORKERS": "0"}, "1 or more"),
        ({"CROWDVEIL_LOG_LEVEL": "loud"}, "debug, info"),
    ],
)
def test_mistakes_in_the_environment(environment: dict[str, str], told: str) -> None:
    with pytest.raises(CrowdveilError, match=told):
        read_settings({}, environment)


@pytest.mark.parametrize(
    ("text", "told"), [("prot = 1", "no setting 'prot'"), ("port = '1'", "whole number"), ("=", "TOML")]
)
def test_mistakes_in_the_file(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CrowdveilError, match=told):
        read_settings({}, {}, file)


def test_every_setting_says_what_it_means() -> None:
    assert all(field.metadata["told"].endswith((".", ".)")) for field in fields(ServiceSettings))


def test_the_address_that_is_shown() -> None:
    assert ServiceSettings(listen="0.0.0.0").address(80) == "http://127.0.0.1:80"
    assert ServiceSettings(listen="::").address(80) == "http://[::1]:80"
    assert ServiceSettings(listen="2001:db8::1").address(80) == "http://[2001:db8::1]:80"
    assert ServiceSettings(public_url="https://vote.example/").address(80) == "https://vote.example"
