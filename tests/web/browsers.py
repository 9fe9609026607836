"""Finds a browser as the audit does; where there is none and root may, installs Debian's package."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from crowdveil.audit import browser
from crowdveil.audit.browser import ARGUMENTS, INSTRUCTION

__all__ = ["ARGUMENTS", "INSTRUCTION", "find_browser"]


def find_browser(playwright):
    """Return the path of a browser, installing Debian's where root may; None if there is none."""
    found = browser.find_browser(playwright)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install(playwright)
        found = browser.find_browser(playwright)
    return found


def _install(playwright):
    """Install Debian's package, one test process at a time."""
    with (Path(tempfile.gettempdir()) / "crowdveil-browser.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if browser.find_browser(playwright) is None:
            for command in (["update"], ["install", "--yes", "--no-install-recommends", "chromium-headless-shell"]):
                subprocess.run(["apt-get", "--quiet", *command], check=False, capture_output=True)
