"""The rules of our own: each with its severity, the reason in one sentence, and what to do instead."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pgsluice.pipeline.lint.model import Engine, LintFinding, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pgsluice.errors import Location


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `why` and `recipe` are sentences for people."""

    code: str
    severity: Severity
    why: str
    recipe: str


_RULES: Final = (
    Rule(
        "unreadable-file",
        Severity.ERROR,
        "PostgreSQL reads SQL files as UTF-8 text without a byte order mark.",
        "save the file as UTF-8 without a byte order mark",
    ),
    Rule(
        "syntax-error",
        Severity.ERROR,
        "PostgreSQL's own grammar refuses the text.",
        "correct the SQL",
    ),
    Rule(
        "template-error",
        Severity.ERROR,
        "Jinja cannot print the template, or what it prints is no SQL for a migration.",
        "correct the template",
    ),
    Rule(
        "psql-command",
        Severity.ERROR,
        "A line that starts with a backslash is a command of psql, and other runners send it to the server.",
        "take the line out, or write it as SQL",
    ),
    Rule(
        "sqlfluff-cannot-parse",
        Severity.NOTE,
        "sqlfluff's grammar has a gap where PostgreSQL's has none, so style was not checked there.",
        "nothing to do: PostgreSQL accepts the statement",
    ),
    Rule(
        "squawk-cannot-parse",
        Severity.NOTE,
        "squawk's grammar has a gap where PostgreSQL's has none, so its rules were not checked there.",
        "nothing to do: PostgreSQL accepts the statement",
    ),
    Rule(
        "unknown-rule",
        Severity.WARNING,
        "An allow comment that names no rule allows nothing.",
        "name the rule as the report does",
    ),
    Rule(
        "carriage-return",
        Severity.ERROR,
        "Checksums take every byte, so a file with CRLF has another digest after a checkout elsewhere.",
        "write *.sql text eol=lf into .gitattributes and save the file with LF line ends",
    ),
    Rule(
        "txmode-directive",
        Severity.ERROR,
        "Only `-- atlas:txmode none` in the first line, with an empty second line, takes a file out of its "
        "transaction.",
        "write -- atlas:txmode none in line 1 and leave line 2 empty",
    ),
    Rule(
        "transaction-control",
        Severity.ERROR,
        "The runner begins and ends transactions, so `begin` and `commit` in a file end the runner's.",
        "take the statement out; a file that must run outside of a transaction says -- atlas:txmode none",
    ),
    Rule(
        "cannot-run-in-transaction",
        Severity.ERROR,
        "PostgreSQL refuses this statement inside of a transaction, and the file runs in one.",
        "put it into a file of its own that starts with -- atlas:txmode none and an empty line "
        "(pgsluice build --online does)",
    ),
    Rule(
        "set-without-local",
        Severity.ERROR,
        "A setting that outlives the transaction changes what later files and sessions of a pool do.",
        "write set local",
    ),
    Rule(
        "set-local-outside-transaction",
        Severity.WARNING,
        "Outside of a transaction `set local` lasts for its own statement only and does nothing.",
        "write set before the statement and reset after it, or take it out",
    ),
    Rule(
        "unqualified-name",
        Severity.WARNING,
        "An unqualified name means what the session's search_path says, which differs between roles.",
        "write the schema in front of the name",
    ),
    Rule(
        "drop-cascade",
        Severity.WARNING,
        "`cascade` takes whatever depends on the object in that database, seen by nobody before.",
        "name and drop what depends on it, without cascade",
    ),
    Rule(
        "enum-value-used",
        Severity.ERROR,
        "A value cannot be used in the transaction that adds it to its enum.",
        "add the value in a migration of its own, and use it in the next one",
    ),
    Rule(
        "too-many-locks",
        Severity.WARNING,
        "One transaction holds every lock until it ends, and the default lock table has room for 6400.",
        "split the migration, or raise max_locks_per_transaction on every server before it runs",
    ),
    Rule(
        "security-definer-path",
        Severity.ERROR,
        "A function with its owner's rights that finds names by its caller's path runs the caller's code.",
        "add set search_path = pg_catalog, pg_temp to the function and qualify the names in its body",
    ),
    Rule(
        "security-invoker-lost",
        Severity.ERROR,
        "A view that read with its caller's rights reads with its owner's from now on, past row security.",
        "create it again with (security_invoker = true)",
    ),
    Rule(
        "row-security-lost",
        Severity.ERROR,
        "Policies hold back nobody once row security is off, and not the owner once it is not forced.",
        "leave row security on, and change the policies instead",
    ),
    Rule(
        "no-policy-left",
        Severity.WARNING,
        "With row security on and no policy, every row is hidden from everybody but the owner.",
        "create the new policy in the same file",
    ),
    Rule(
        "grant-to-public",
        Severity.WARNING,
        "PUBLIC is every role that is or will be, each login of the cluster included.",
        "grant to the roles that need it",
    ),
    Rule(
        "dangerous-grant-to-public",
        Severity.ERROR,
        "Every role may write, or act with the owner's rights, or gets that on all objects to come.",
        "grant to the roles that need it, and revoke execute on security definer functions from public",
    ),
)

RULES: Final[Mapping[str, Rule]] = MappingProxyType({rule.code: rule for rule in _RULES})


def found(
    code: str,
    message: str,
    location: Location,
    *,
    recipe: str | None = None,
    end_line: int | None = None,
) -> LintFinding:
    """A finding of one of our rules; `recipe` replaces the rule's own."""
    rule = RULES[code]
    return LintFinding(
        engine=Engine.PGSLUICE,
        rule=code,
        severity=rule.severity,
        message=message,
        location=location,
        recipe=rule.recipe if recipe is None else recipe,
        end_line=end_line,
    )
