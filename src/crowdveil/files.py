"""Atomic file writes: a file appears whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crowdveil.errors import CrowdveilError

PICTURES = (".png", ".svg")
ROOM = 2**20
"""Bytes for which there must be room where a file is to be written: more than most releases take."""
_OWNER_ONLY = stat.S_IRUSR | stat.S_IWUSR


def check_writable(path: Path) -> None:
    """Refuse, before any work is done, a path that could not be written: ``ROOM`` bytes are written beside it."""
    target = _target(path)
    trial = _beside(target)
    try:
        trial.write_bytes(bytes(ROOM))
    except OSError as error:
        raise CrowdveilError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        trial.unlink(missing_ok=True)


def _target(path: Path) -> Path:
    """Return the file that is to be written, to which a link leads; refuse what is none, or is nowhere."""
    try:
        if path.is_dir():
            raise CrowdveilError(f"cannot write {path}: it is a directory")
        if path.exists() and not path.is_file():
            raise CrowdveilError(
                f"cannot write {path}: it is a device or a pipe, which nothing can replace; name a file"
            )
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        if _is_database(target) or (target.suffix == ".key" and _is_database(target.with_suffix(""))):
            raise CrowdveilError(
                f"cannot write {path}: it is a ledger or its key, or another database, which nothing may replace; name "
                "another file"
            )
        if not target.parent.is_dir():
            raise CrowdveilError(f"cannot write {path}: there is no directory {target.parent}")
    except OSError as error:  # such as a name that is too long
        raise CrowdveilError(f"cannot write {path}: {error.strerror or error}") from None
    if not os.access(target.parent, os.W_OK):
        raise CrowdveilError(f"cannot write {path}: the directory {target.parent} does not allow it")
    return target


def _is_database(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _beside(target: Path) -> Path:
    """Return the path of an unfinished file, whose name is not too long wherever the target's is not."""
    return target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.unfinished")


def check_picture(path: Path) -> None:
    """Refuse a picture that could not be written there, or of an unknown type."""
    if path.suffix not in PICTURES:
        raise CrowdveilError(f"the picture {path} must end in {' or '.join(PICTURES)}")
    check_writable(path)


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a temporary file beside ``path`` to write to; rename it to ``path`` when the block succeeds.

    The bytes are on disk before the rename, so a kill or a power cut leaves the old file, the new one or none. If the
    path is a link, the file that it leads to is replaced, and the link stays. A file that replaces another may be read
    by those who might read that one, and by its owner. A new ``private`` file (answers of people, secrets) may be read
    by its owner only.
    """
    target = _target(path)
    unfinished = _beside(target)
    try:
        unfinished.touch(_OWNER_ONLY if private else 0o666)
        _keep_mode(unfinished, target)
        yield unfinished
        _flush(unfinished)
        unfinished.replace(target)
        _flush(target.parent)
    except OSError as error:
        raise CrowdveilError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        unfinished.unlink(missing_ok=True)


def _keep_mode(new: Path, target: Path) -> None:
    """Let those who might read the target, and its owner, read what will replace it."""
    if target.exists():
        new.chmod(stat.S_IMODE(target.stat().st_mode) | _OWNER_ONLY)


def put_in_place(finished: Path, path: Path) -> None:
    """Rename a file that is already on disk, within the same file system; one that it replaces gives it its mode."""
    try:
        if finished.is_file():
            _keep_mode(finished, path)
        finished.replace(path)
        _flush(path.parent)
    except OSError as error:
        raise CrowdveilError(f"cannot write {path}: {error.strerror or error}") from None


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Make a folder, with those above it, unless it exists."""
    if path.exists() and not path.is_dir():
        raise CrowdveilError(f"cannot make the folder {path}: it is a file; name another place")
    try:
        path.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as error:
        raise CrowdveilError(f"cannot make the folder {path}: {error.strerror or error}") from None


def remove(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Write a text file whole or not at all."""
    with replacing(path, private=private) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
