"""Finds a browser: an installed Chromium or Chrome, else Playwright's own, else Debian's package where it may be installed."""

import os
import shutil
import subprocess
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
        subprocess.run(["apt-get", "install", "--yes", "--quiet", "chromium"], check=False, capture_output=True)
        installed = _installed()
    return installed


def _installed():
    return next((path for name in NAMES if (path := shutil.which(name))), None)
