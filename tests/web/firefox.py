"""Firefox over WebDriver BiDi, spoken directly: Debian's package needs no driver beside it.

Found as installed, or installed like Chromium: Debian's package, where root runs the tests.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from websockets.sync.client import connect

NAMES = ("firefox-esr", "firefox")
MISSING = "there is no Firefox: install it (Debian: apt-get install firefox-esr)"
PATIENCE = 60
"""Seconds until something counts as missing."""
SETTINGS = {
    "app.update.enabled": False,
    "browser.download.folderList": 2,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage": "about:blank",
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "intl.accept_languages": "en-GB",
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.enabled": False,
    "ui.prefersReducedMotion": 1,
}


def find_firefox():
    """Return the path of Firefox, installing Debian's where root may; None if there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        with (Path(tempfile.gettempdir()) / "crowdveil-firefox.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for command in (["update"], ["install", "--yes", "--no-install-recommends", "firefox-esr"]):
                subprocess.run(["apt-get", "--quiet", *command], check=False, capture_output=True)
        found = next((path for name in NAMES if (path := shutil.which(name))), None)
    return found


@contextmanager
def open_firefox(path):
    """Start Firefox without a window, and return its only tab."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        settings = {**SETTINGS, "browser.download.dir": profile}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in settings.items()]
        (Path(profile) / "user.js").write_text("\n".join(lines), encoding="utf-8")
        process = subprocess.Popen(
            [path, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=(Path(profile) / "said").open("w"),
            env={**os.environ, "HOME": profile},
        )
        try:
            with connect(f"{_address(process, Path(profile) / 'said')}/session", max_size=None) as socket:
                yield Tab(socket, Path(profile))
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _address(process, said):
    """Wait for the address where it listens."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(r"WebDriver BiDi listening on (ws://\S+)", said.read_text(encoding="utf-8"))
        if found:
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"Firefox does not listen: {said.read_text(encoding='utf-8')[-500:]}")


class Tab:
    """A tab, used by touching and typing as a person does, with a note of what it sends and complains about."""

    def __init__(self, socket, downloads):
        self._socket = socket
        self._downloads = downloads
        self._number = 0
        self.requests = []
        self.complaints = []
        self._ask("session.new", capabilities={})
        self._ask("session.subscribe", events=["network.beforeRequestSent", "log.entryAdded"])
        self._context = self._ask("browsingContext.getTree")["contexts"][0]["context"]

    def _ask(self, method, **parameters):
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            told = json.loads(self._socket.recv(PATIENCE))
            if told.get("id") == self._number:
                assert told["type"] == "success", told
                return told["result"]
            if told.get("method") == "network.beforeRequestSent":
                self.requests.append(told["params"]["request"])
            if told.get("method") == "log.entryAdded" and told["params"]["level"] == "error":
                self.complaints.append(told["params"]["text"])

    def resize(self, width, height):
        """Give the tab the size of a device."""
        self._ask("browsingContext.setViewport", context=self._context, viewport={"width": width, "height": height})

    def open(self, address):
        """Go to an address."""
        self._ask("browsingContext.navigate", context=self._context, url=address, wait="complete")

    def evaluate(self, expression):
        """Return what an expression is on the page, as JSON."""
        target = {"context": self._context, "sandbox": "test"}
        told = self._ask(
            "script.evaluate", expression=f"JSON.stringify({expression})", target=target, awaitPromise=True
        )
        assert told["type"] == "success", told
        return json.loads(told["result"].get("value", "null"))

    def wait_for(self, selector):
        """Wait until something is there and visible."""
        deadline = time.monotonic() + PATIENCE
        while not self.evaluate(f"!!document.querySelector({json.dumps(selector)})?.getClientRects().length"):
            assert time.monotonic() < deadline, f"there is no {selector}: {self.evaluate('document.body.innerText')}"
            time.sleep(0.05)

    def touch(self, selector):
        """Press the middle of something with the pointer."""
        self.wait_for(selector)
        box = self.evaluate(
            f"""(() => {{
              const found = document.querySelector({json.dumps(selector)});
              found.scrollIntoView({{ block: "center", behavior: "instant" }});
              const box = found.getBoundingClientRect();
              return [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)];
            }})()"""
        )
        steps = [
            {"type": "pointerMove", "x": box[0], "y": box[1]},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        self._ask(
            "input.performActions",
            context=self._context,
            actions=[{"type": "pointer", "id": "mouse", "actions": steps}],
        )

    def downloaded(self, name):
        """Wait for a file that was saved, and return what is in it."""
        deadline = time.monotonic() + PATIENCE
        while not ((self._downloads / name).is_file() and (self._downloads / name).stat().st_size):
            assert time.monotonic() < deadline, f"{name} was not saved"
            time.sleep(0.05)
        return (self._downloads / name).read_bytes()

    def press(self, key):
        """Press a key."""
        steps = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self._ask(
            "input.performActions", context=self._context, actions=[{"type": "key", "id": "keys", "actions": steps}]
        )
