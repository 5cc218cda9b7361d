"""The files of `schema/pgflow/functions`: what each header says, and the body that it stands above."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from pglast import ast, enums
from pglast.parser import parse_sql

ROOT: Final = Path(__file__).parents[3]
FOLDER: Final = ROOT / "schema/pgflow/functions"
LOCKS: Final = "Locks: "


@dataclass(frozen=True, slots=True)
class FunctionFile:
    """One function as its file has it; `locks` is what the header says after `Locks:`, or empty."""

    name: str
    text: str
    statement: Any  # the parser's nodes have no types
    comments: tuple[Any, ...]

    @property
    def header(self) -> tuple[str, ...]:
        """The lines of the comment that the file begins with."""
        lines = []
        for line in self.text.splitlines():
            if not line.startswith("--"):
                break
            lines.append(line.removeprefix("--").strip())
        return tuple(lines)

    @property
    def locks(self) -> str:
        """From `Locks:` to the first line that ends a sentence."""
        found: list[str] = []
        for line in self.header:
            if line.startswith(LOCKS) or found:
                found.append(line.removeprefix(LOCKS))
                if line.endswith("."):
                    break
        return " ".join(found)

    @property
    def path(self) -> tuple[str, ...]:
        """Schema and name, as written in the statement."""
        return tuple(part.sval for part in self.statement.funcname)

    @property
    def options(self) -> dict[str, Any]:
        """What follows the signature, by the parser's name for each."""
        return {option.defname: option.arg for option in self.statement.options}

    @property
    def language(self) -> str:
        """`sql` or `plpgsql`."""
        return str(self.options["language"].sval)

    @property
    def body(self) -> str:
        """What stands between the dollar signs."""
        return str(self.options["as"][0].sval)

    @property
    def returns_table(self) -> bool:
        """Whether its result's columns are output parameters."""
        modes = {parameter.mode for parameter in self.statement.parameters or ()}
        return enums.FunctionParameterMode.FUNC_PARAM_TABLE in modes


@cache
def function_files() -> dict[str, FunctionFile]:
    """All of them by name, which is the file's as well."""
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("*.sql"))}


def _read(path: Path) -> FunctionFile:
    text = path.read_text("utf-8")
    first, *comments = (raw.stmt for raw in parse_sql(text))
    assert isinstance(first, ast.CreateFunctionStmt), f"{path}: does not begin with its function"
    assert {type(other) for other in comments} <= {ast.CommentStmt}, f"{path}: holds something else"
    return FunctionFile(path.stem, text, first, tuple(comments))
