"""What comes from others: npm packages by exact version and hash, from whatever registry, and nothing shipped."""

import hashlib
import json
import re
from importlib import resources
from pathlib import Path

ROOT = Path(__file__).parents[2]
VENDOR = Path(str(resources.files("crowdveil"))) / "web" / "vendor"

VENDORED: dict[str, tuple[str, str]] = {
    "hpke/index.js": ("8a71aaf734b100b52a4dbaf0d73b33d0108f409c1681829fb3f74de37342914a", "hpke/LICENSE.md"),
}
"""What the page ships of others: file -> (SHA-256, the file with its licence). A new one is written down here."""


def packages():
    lock = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))
    return {path: entry for path, entry in lock["packages"].items() if path}


def test_npm_packages_have_exact_versions():
    wanted = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
    assert {name: packages()[f"node_modules/{name}"]["version"] for name in wanted} == wanted


def test_npm_packages_have_hashes_and_no_host():
    assert all(entry["integrity"].startswith("sha512-") for entry in packages().values())
    assert "://" not in (ROOT / "package-lock.json").read_text(encoding="utf-8")


def test_what_the_page_ships_of_others_is_known_with_its_licence():
    found = {path.relative_to(VENDOR).as_posix() for path in VENDOR.rglob("*") if path.is_file()}
    shipped = {name for name in found if not name.endswith(".d.ts")}  # Types are ours, for the checks.
    assert shipped == set(VENDORED) | {licence for _, licence in VENDORED.values()}
    for name, (digest, _) in VENDORED.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest
