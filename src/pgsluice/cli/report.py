"""How a plan reads: for a terminal as text, for a machine as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pgsluice.pipeline.build import BuildResult
    from pgsluice.pipeline.statement import Plan


MOST_HAZARDS: Final = 20


def plan_json(plan: Plan) -> dict[str, object]:
    """A plan as JSON values."""
    return {
        "statements": [
            {
                "sql": statement.sql,
                "claim": statement.claim,
                "phase": str(statement.phase),
                "hazards": [{"code": hazard.code, "text": hazard.text} for hazard in statement.hazards],
            }
            for statement in plan.statements
        ],
        "checks": [{"rows": check.rows, "message": check.message} for check in plan.checks],
        "backfills": [
            {"schema": one.schema, "table": one.table, "column": one.column, "type": one.type}
            for one in plan.backfills
        ],
        "losses": [
            {"what": loss.what, "sql": loss.sql, "looks_renamed_to": loss.rename[0] if loss.rename else None}
            for loss in plan.losses
        ],
        "notes": list(plan.notes),
    }


def plan_text(plan: Plan, *, explain: bool) -> str:
    """A plan as SQL, phase by phase; with `explain` each statement says what it pays for."""
    lines: list[str] = []
    phase = None
    for statement in plan.statements:
        if statement.phase is not phase:
            phase = statement.phase
            lines += ["", f"-- {phase}"] if lines else [f"-- {phase}"]
        if explain:
            lines.append(f"-- {statement.claim}")
        lines += [f"-- hazard {hazard.code}: {hazard.text}" for hazard in statement.hazards]
        lines.append(f"{statement.sql};")
    lines += summary_lines(plan)
    return "\n".join(lines)


def summary_lines(plan: Plan) -> list[str]:
    """What a reviewer must know besides the SQL."""
    lines = [f"-- loses data: {loss.what}" for loss in plan.losses]
    lines += [f"-- needs a backfill: {one.schema}.{one.table}.{one.column}" for one in plan.backfills]
    return lines + [f"-- note: {note}" for note in plan.notes]


def build_json(result: BuildResult) -> dict[str, object]:
    """A build's result as JSON values."""
    return {
        "target": result.target,
        "outcome": str(result.outcome),
        "migration": result.migration,
        "files": list(result.files),
        "proved_on": result.server,
        "rows_in": list(result.rows_in),
        "no_rows_in": list(result.no_rows_in),
        "plan": plan_json(result.plan) if result.plan is not None else None,
    }


def build_text(result: BuildResult) -> str:
    """A build's result in a few lines."""
    notes = [f"  note: {note}" for note in result.plan.notes] if result.plan is not None else []
    if result.outcome == "written" and result.plan is not None:
        wrote = [f"wrote {file}" for file in result.files]
        return "\n".join((*wrote, *_written_lines(result, result.plan), *notes))
    return "\n".join((_kept_line(result), *notes))


def _kept_line(result: BuildResult) -> str:
    files = ", ".join(result.files)
    if result.outcome == "removed":
        return f"removed {files}: the schema of {result.target} is again what came before it"
    if result.outcome == "recorded":
        return f"nothing to do: the migrations of {result.target} lead to this schema already"
    verb = "is as it was" if len(result.files) == 1 else "are as they were"
    kept = f", {files} {verb}" if files else ""
    return f"nothing to do: the schema of {result.target} is the one of the last proved build{kept}"


def _written_lines(result: BuildResult, plan: Plan) -> list[str]:
    count = len(plan.statements)
    lines = [f"  {count} generated statement{'s' if count != 1 else ''}, proved on {result.server}"]
    if result.rows_in:
        lines.append(f"  proved again with rows in {', '.join(result.rows_in)}")
    lines += [f"  no row could be made in {reason}" for reason in result.no_rows_in]
    hazards = {f"  hazard {hazard.code}: {hazard.text}" for one in plan.statements for hazard in one.hazards}
    lines += sorted(hazards)[:MOST_HAZARDS]
    if len(hazards) > MOST_HAZARDS:
        lines.append(f"  {len(hazards) - MOST_HAZARDS} more hazards stand in the file")
    return lines + [f"  loses {loss.what}" for loss in plan.losses]
