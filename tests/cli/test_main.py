"""The rim: exit codes, and what a user sees when something is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pgsluice import __version__
from pgsluice.cli import main as rim
from pgsluice.cli import release
from pgsluice.cli.main import COMMANDS, main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, which is the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pgsluice.toml").write_text("[targets.app]\n")
    (tmp_path / "schema/app").mkdir(parents=True)
    return tmp_path


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pgsluice {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    listed = [
        line.split()[0]
        for line in capsys.readouterr().out.split("Commands:\n")[1].splitlines()[: len(COMMANDS)]
    ]
    assert listed == list(COMMANDS)


@pytest.mark.parametrize("command", [*(["init", "new", "release", "verify"]), "dev"])
def test_every_command_teaches(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: pgsluice {command} ")
    assert command == "dev" or f"Examples:\n    pgsluice {command}" in shown


def test_a_group_without_a_command_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev"]) == 0
    assert "stop  Stop this project's development server." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["verfy"], "error: no such command 'verfy'. Did you mean 'verify'?\nhint: pgsluice --help\n"),
        (
            ["verify", "--targte", "x"],
            "error: no such option: --targte (Possible options: --target)\nhint: pgsluice verify --help\n",
        ),
        (["new"], "error: missing argument 'NAME'\nhint: pgsluice new --help\n"),
        (
            ["-C", "new", "build", "--target"],
            "error: option '--target' requires an argument\nhint: pgsluice build --help\n",
        ),
        (
            ["lint", "--format", "xml"],
            "error: invalid value for '--format': 'xml' is not one of"
            " 'text', 'json', 'sarif', 'github', 'gitlab'\n"
            "hint: pgsluice lint --help\n",
        ),
        (["-C"], "error: option '-C' requires an argument\nhint: pgsluice --help\n"),
    ],
)
def test_a_usage_error_is_short_and_exits_2(
    arguments: list[str], text: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr() == ("", text)


def test_no_project_is_exit_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["verify"]) == 2
    text = (
        f"error: no pgsluice.toml in {tmp_path} or a folder above it\n"
        "hint: pgsluice -C FOLDER, if the project is in another one; pgsluice init starts one here\n"
    )
    assert capsys.readouterr() == ("", text)


def test_another_folder_can_be_named(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir("/")
    assert main(["-C", str(project / "schema"), "verify"]) == 0
    assert capsys.readouterr().out == "app: as built\n"
    assert main(["-C", str(project / "none"), "verify"]) == 2
    assert capsys.readouterr().err == f"error: {project}/none is not a folder\n"


def test_with_json_an_error_is_json_too(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pgsluice.toml").write_text("[targets.app]\nmangaes = 1\n")
    assert main(["verify", "--json"]) == 2
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out) == {
        "error": {
            "message": "unknown key targets.app.mangaes, did you mean manages?",
            "file": "pgsluice.toml",
            "line": 2,
            "column": None,
            "details": [],
            "hint": None,
            "exit_code": 2,
        }
    }


def test_a_fault_of_ours_is_a_short_message(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(release, "load", broken)
    assert main(["release"]) == rim.EXIT_BUG == 70
    assert capsys.readouterr() == (
        "",
        "error: this is a bug in pgsluice: ZeroDivisionError: oops\n"
        "hint: PGSLUICE_TRACEBACK=1 shows the traceback; please report it\n",
    )
    monkeypatch.setenv("PGSLUICE_TRACEBACK", "1")
    assert main(["release"]) == 70
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_an_interrupt_has_no_traceback(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(release, "load", interrupted)
    assert main(["release"]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


def test_a_reader_that_left_is_no_error(project: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "pgsluice", "--help"],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_colours_only_on_a_terminal_that_wants_them(project: Path) -> None:
    def seen(**environment: str) -> bytes:
        ours, theirs = os.openpty()
        subprocess.run(
            [sys.executable, "-m", "pgsluice", "release"],
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", **environment},
            check=False,
            timeout=60,
        )
        os.close(theirs)
        shown = os.read(ours, 4096)
        os.close(ours)
        return shown

    assert seen(NO_COLOR="").startswith(b"\x1b[1;31merror:\x1b[0m no migration")
    assert seen(NO_COLOR="1").startswith(b"error: no migration")
    assert seen(NO_COLOR="", TERM="dumb").startswith(b"error: no migration")
