"""What must hold of pgflow's rows and messages whenever no transaction is open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from psycopg.sql import SQL, Composable, Identifier, Literal

if TYPE_CHECKING:
    from uuid import UUID

    import psycopg

BROKEN: Final = Path(__file__).parent / "invariants.sql"
QUEUES: Final = """
select distinct lower(flow_slug)
from pgflow.flows
where to_regclass(format('pgmq.%I', 'q_' || lower(flow_slug))) is not null
  and to_regclass(format('pgmq.%I', 'a_' || lower(flow_slug))) is not null
order by 1
"""
MESSAGES: Final = """
select {queue}::text as queue, msg_id, message, true as is_live from pgmq.{live}
union all select {queue}, msg_id, message, false from pgmq.{archive}
"""
NO_MESSAGES: Final = (
    "select null::text as queue, null::bigint as msg_id, null::jsonb as message, null::boolean as is_live"
    " where false"
)


def broken(
    conn: psycopg.Connection[Any], run_id: UUID | None = None, *, archives_kept: bool = True
) -> list[str]:
    """All broken invariants, as readable findings; of one run, or of the whole database.

    Args:
        conn: Sees the rows and messages as they are in its transaction.
        run_id: The run to look at. Messages that belong to no task are only found in the whole database.
        archives_kept: False where archives were trimmed: then an ended task's message may be gone.
    """
    queues = [str(row[0]) for row in conn.execute(QUEUES)]
    query = SQL(BROKEN.read_text(encoding="utf-8")).format(
        only=SQL("{}::uuid").format(Literal(run_id)),
        messages=SQL(" union all ").join(map(_messages, queues)) if queues else SQL(NO_MESSAGES),
        archives_kept=Literal(archives_kept),
    )
    return [finding for (finding,) in conn.execute(query)]


def _messages(queue: str) -> Composable:
    return SQL(MESSAGES).format(
        queue=Literal(queue), live=Identifier(f"q_{queue}"), archive=Identifier(f"a_{queue}")
    )
