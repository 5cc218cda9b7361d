"""What `pgsluice init --from` tells: what it wrote, what stays out, what to do next."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pgsluice.pipeline.adopt import Adopted

SHOWN: Final = 20


def adopted_json(adopted: Adopted, root: Path, *, target: str, wrote: Sequence[str]) -> dict[str, object]:
    """An adoption as JSON values."""
    return {
        "root": str(root),
        "target": target,
        "wrote": sorted(wrote),
        "migration": adopted.migration,
        "objects": adopted.objects,
        "runner": adopted.runner,
        "proved_on": adopted.server,
        "requires": list(adopted.requires),
        "carried_by_requires": list(adopted.carried),
        "left_out": [{"what": one.what, "reason": one.reason} for one in adopted.left_out],
        "ignored": list(adopted.ignored),
        "notes": list(adopted.notes),
    }


def adopted_text(adopted: Adopted, *, target: str, folder: Path | None, wrote: Sequence[str]) -> str:
    """An adoption in a few lines, and the commands that follow."""
    folders = Counter(_shown_folder(name) for name in wrote)
    lines = [f"adopted {adopted.objects} object{'s' if adopted.objects != 1 else ''} of {adopted.place}"]
    lines += [
        f"wrote {name}" if count == 1 else f"wrote {count} files in {name}/"
        for name, count in folders.items()
    ]
    if adopted.migration in adopted.files:
        lines.append(f"  {adopted.migration} gives all of it, proved on {adopted.server}")
    else:
        lines.append("  there is nothing in it that a migration would make: is it the right database?")
    lines.append(f"  objects of {adopted.runner} belong to whoever runs the migrations")
    lines += _listed("in requires, as no migration can change it", adopted.carried)
    lines += _listed("left out", [f"{one.what}: {one.reason}" for one in adopted.left_out])
    lines += _listed("ignored", adopted.ignored)
    lines += [f"note: {note}" for note in adopted.notes]
    return "\n".join((*lines, *_next(adopted, target, folder)))


def _next(adopted: Adopted, target: str, folder: Path | None) -> list[str]:
    added = " ".join(dict.fromkeys(name.split("/")[0] for name in adopted.files))
    baseline = '  pgsluice baseline --database "$DATABASE_URL"   tells the database that it stands here'
    return [
        "next:",
        *([f"  cd {shlex.quote(str(folder))}"] if folder else []),
        *([baseline] if adopted.migration in adopted.files else []),
        f"  git add .gitattributes {added}",
        f"  edit a file of schema/{target}, then: pgsluice build NAME",
        '  pgsluice apply --database "$DATABASE_URL"',
    ]


def _listed(title: str, items: Sequence[str]) -> list[str]:
    """A bounded list under a title, nothing where it is empty."""
    if not items:
        return []
    more = [f"  ... {len(items) - SHOWN} more, see --json"] if len(items) > SHOWN else []
    return [f"{title}:", *(f"  {item}" for item in items[:SHOWN]), *more]


def _shown_folder(name: str) -> str:
    """A file at the top by its name, all others by their two upper folders."""
    parts = name.split("/")
    return name if len(parts) < 3 else "/".join(parts[:2])
