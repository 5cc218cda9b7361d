"""Progress: on stderr, once a step has taken a second."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Final

import pytest

SLOW: Final = """
import sys
from pgsluice.cli import output
output.PROGRESS_AFTER_S = 0.01
with output.progress() as say:
    say("loading the schema")
    sys.stdin.readline()
    say("proving")
    sys.stdin.readline()
print("done")
"""

QUICK: Final = """
from pgsluice.cli import output
with output.progress("loading the schema") as say:
    say("proving")
print("done")
"""


def test_a_slow_step_is_one_plain_line_without_a_terminal() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLOW],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        for line in ("loading the schema …\n", "proving …\n"):
            assert process.stderr.readline() == line
            process.stdin.write("\n")
            process.stdin.flush()
        assert process.communicate(timeout=60) == ("done\n", "")


def read_until(descriptor: int, text: str) -> None:
    """Read a terminal until it shows `text`; gives up after half a minute."""
    seen, end = "", time.monotonic() + 30
    while text not in seen:
        if time.monotonic() > end:
            pytest.fail(f"the terminal never showed {text!r}, but {seen!r}")
        seen += os.read(descriptor, 4096).decode("utf-8", "replace")


def test_a_slow_step_is_a_spinner_on_a_terminal() -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SLOW],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
        text=True,
    ) as process:
        os.close(theirs)
        assert process.stdin is not None
        for text in ("loading the schema", "proving"):
            read_until(ours, text)
            process.stdin.write("\n")
            process.stdin.flush()
        assert process.communicate(timeout=60)[0] == "done\n"
    os.close(ours)


def test_a_quick_step_is_not_shown() -> None:
    done = subprocess.run(
        [sys.executable, "-c", QUICK], capture_output=True, text=True, check=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
