"""The program as a person runs it, without starting an interpreter for each command."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NamedTuple
from unittest import mock

from crowdveil.cli.app import main


class Result(NamedTuple):
    code: int
    stdout: str
    stderr: str


def crowdveil(*words: object, stdin: str = "") -> Result:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with mock.patch("sys.stdin", io.StringIO(stdin)), redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(word) for word in words])
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Result(code, out.getvalue(), err.getvalue())


def answer(*words: object) -> Any:
    """Run a command that must succeed, and return its JSON."""
    result = crowdveil(*words, "--json")
    assert result.code == 0, result.stderr
    return json.loads(result.stdout)


def refused(result: Result, *said: str) -> None:
    """Check that a command ended in one line that says so much, with exit code 2 and nothing on stdout."""
    assert result.code == 2, result.stdout + result.stderr
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("crowdveil: ")
    for words in said:
        assert words in line, line
    assert result.stdout == ""
