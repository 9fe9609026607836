"""Finds a browser: an installed Chromium or Chrome, Playwright's own, or Debian's package where root may install it."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
INSTRUCTION = (
    "these tests need a browser, and there is none: install Chromium or Chrome (Debian: apt-get install chromium), "
    "or run `playwright install chromium`"
)


def find_browser(playwright):
    """Return the path of a browser, installing Debian's where root may; None if there is none."""
    installed = _installed()
    if installed is None and Path(playwright.chromium.executable_path).exists():
        installed = playwright.chromium.executable_path
    if installed is None and os.geteuid() == 0 and shutil.which("apt-get"):
        installed = _install()
    return installed


def _install():
    """Install Debian's package, one test process at a time."""
    with (Path(tempfile.gettempdir()) / "crowdveil-browser.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _installed() is None:
            for command in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
                subprocess.run(["apt-get", "--quiet", *command], check=False, capture_output=True)
        return _installed()


def _installed():
    return next((path for name in NAMES if (path := shutil.which(name))), None)
