"""The examples of a deployment, with real proxies on loopback: votes, hosts and addresses come through."""

from __future__ import annotations

import base64
import datetime
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.service.voters import poll, reports
from tests.web.conftest import node

from crowdveil.protocol.submission import new_token
from crowdveil.service.app import create_app
from crowdveil.service.poll import find_poll
from crowdveil.service.server import served_here
from crowdveil.service.service import Service
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store.store import open_store

__all__ = ["node"]

EXAMPLES = Path(__file__).parents[2] / "examples" / "deploy"
NAME = "crowd.example"
BY_HTTP_2 = """
const [port, certificate, name] = process.argv.slice(1);
const ca = require("node:fs").readFileSync(certificate);
const session = require("node:http2").connect(`https://127.0.0.1:${port}`, { ca, servername: name });
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { headers, body } = JSON.parse(line);
  const stream = session.request({ ...headers, ":authority": name });
  let status, text = "";
  stream.setEncoding("utf8");
  stream.on("response", (answer) => { status = answer[":status"]; });
  stream.on("data", (part) => { text += part; });
  stream.on("end", () => console.log(JSON.stringify({ status, text })));
  stream.end(Buffer.from(body, "base64"));
}).on("close", () => session.close());
"""
"""Sends what comes line by line."""


def program(name: str) -> str:
    """Return the path of a program, installing Debian's package where root may; else the test is skipped."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (["update"], ["install", "--yes", "--no-install-recommends", name]):
            subprocess.run(["apt-get", "--quiet", *command], check=False, capture_output=True)
        found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        pytest.skip(f"there is no {name} here, and it could not be installed: apt install {name}")
    return found


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def certify(folder: Path) -> None:
    """Make a certificate of the example's name that nobody but this test trusts."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
    made = builder.sign(key, hashes.SHA256())
    (folder / "own.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "own.key").write_bytes(private)


@pytest.fixture(scope="module", params=["caddy", "nginx"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def address(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a service listens that stands behind a proxy."""
    settings = ServiceSettings(public_url=f"https://{NAME}", trusted_proxies=1, requests_per_minute=60)
    with open_store(f"sqlite:///{tmp_path_factory.mktemp('served')}/crowdveil.sqlite") as store:
        store.polls.add(find_poll("kidney"))
        with served_here(create_app(Service(store, settings))) as address:
            yield address


@pytest.fixture(scope="module")
def proxied(kind: str, address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The port of a proxy in front of a server of its own, and the certificate for the example's name."""
    folder, port = tmp_path_factory.mktemp(kind), free_port()
    certify(folder)
    behind = address.removeprefix("http://")
    if kind == "caddy":
        text = (EXAMPLES / "Caddyfile").read_text().replace("127.0.0.1:8000", behind)
        text = text.replace(
            f"{NAME} {{", f"{NAME}:{port} {{\n\tbind 127.0.0.1\n\ttls {folder}/own.pem {folder}/own.key"
        )
        text = text.replace("admin off", "admin off\n\tauto_https disable_redirects")
        (folder / "Caddyfile").write_text(text)
        command = [program("caddy"), "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
    else:
        text = (EXAMPLES / "nginx.conf").read_text().replace("127.0.0.1:8000", behind)
        text = text.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
        text = re.sub(r"/etc/ssl/crowd.example.pem", f"{folder}/own.pem", text)
        text = re.sub(r"/etc/ssl/private/crowd.example.key", f"{folder}/own.key", text)
        (folder / "site.conf").write_text(text)
        places = "".join(
            f"{what}_temp_path {folder}/{what};" for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (folder / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;"
            f"events {{}} http {{ {places} include {folder}/site.conf; }}"
        )
        command = [program("nginx"), "-c", str(folder / "nginx.conf"), "-p", str(folder)]
    homes = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **homes})
        try:
            deadline = time.monotonic() + 60
            while not _listens(port):
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < deadline, (folder / "log").read_text()
                time.sleep(0.05)
            yield f"{port} {folder}/own.pem"
        finally:
            process.terminate()
            process.wait(60)


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def visitor(proxied: str) -> Iterator[httpx.Client]:
    """A visitor who comes to the example's name, by https, and trusts its certificate."""
    port, certificate = proxied.split()
    trust = ssl.create_default_context(cafile=certificate)

    class Local(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            request.extensions["sni_hostname"] = NAME
            request.url = request.url.copy_with(host="127.0.0.1", port=int(port))
            return super().handle_request(request)

    with httpx.Client(transport=Local(verify=trust), base_url=f"https://{NAME}", timeout=60) as client:
        yield client


@pytest.fixture
def sender(kind: str, visitor: httpx.Client, proxied: str, node: Path) -> Iterator[httpx.Client]:
    """A visitor who sends something: to Caddy by HTTP/2, which it offers, as every browser does.

    By HTTP/1.1, Caddy closes a body as soon as the answer begins. What still copies that body to the service, though
    the service has all of it, then fails, Caddy ends the connection to the service, and now and then an answer comes
    without its body (caddyserver/caddy#5431).
    """
    if kind != "caddy":
        yield visitor
        return
    words = [str(node), "--eval", BY_HTTP_2, *proxied.split(), NAME]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        told, answers = process.stdin, process.stdout
        assert told is not None
        assert answers is not None

        def send(request: httpx.Request) -> httpx.Response:
            headers = {name: value for name, value in request.headers.items() if name not in ("host", "connection")}
            headers |= {":method": request.method, ":path": request.url.raw_path.decode()}
            told.write(f"{json.dumps({'headers': headers, 'body': base64.b64encode(request.read()).decode()})}\n")
            told.flush()
            answer = json.loads(answers.readline())
            return httpx.Response(answer["status"], text=answer["text"])

        with httpx.Client(transport=httpx.MockTransport(send), base_url=f"https://{NAME}") as client:
            yield client


def test_a_page_comes_by_https_with_its_headers(visitor: httpx.Client) -> None:
    page = visitor.get("/p/kidney/")
    assert page.status_code == 200
    assert "max-age" in page.headers["Strict-Transport-Security"]
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]


def test_a_cookie_of_the_host_is_for_https_only(visitor: httpx.Client, sender: httpx.Client) -> None:
    answer = visitor.get("/host/sign-in")
    assert "secure" in answer.headers["set-cookie"].lower()
    refused = sender.post("/host/sign-in", data={"password": "x"})
    assert refused.status_code == 403  # Without the page's token.


def test_a_vote_comes_through_and_counts_once(sender: httpx.Client) -> None:
    asked, headers = poll("kidney"), {"Crowdveil-Ballot": new_token()}
    for status in (201, 200):
        sent = sender.put("/api/polls/kidney/report", json=reports(asked, 12)[0], headers=headers)
        assert sent.status_code == status, sent.text


def test_what_is_too_large_is_refused(sender: httpx.Client) -> None:
    assert sender.put("/api/polls/kidney/report", content=b"x" * 100_000).status_code == 413


def test_a_visitor_cannot_pass_for_others_by_a_header(visitor: httpx.Client) -> None:
    """60 requests a minute for an address: whoever names a new one each time is refused all the same."""
    spoofed = ({"X-Forwarded-For": f"198.51.100.{number}"} for number in range(200))
    assert any(visitor.get("/healthz", headers=header).status_code == 429 for header in spoofed)


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip("there is no systemd-analyze here: apt install systemd")
    unit, runs = (EXAMPLES / "crowdveil.service").read_text(), "/opt/crowdveil/bin/crowdveil"
    assert f"ExecStart={runs} serve" in unit
    (tmp_path / "crowdveil.service").write_text(unit.replace(runs, "/bin/true"))
    checked = subprocess.run(
        [found, "verify", str(tmp_path / "crowdveil.service")], capture_output=True, text=True, timeout=60, check=False
    )
    about_it = [line for line in checked.stderr.splitlines() if "crowdveil.service" in line]
    assert (checked.returncode, about_it) == (0, [])
