"""An existing database becomes a project: schema files, a baseline that was proved, and a configuration.

Everything is made in a folder aside and compared with the database; only then is it written, all or nothing.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from pgsluice import __version__
from pgsluice.config import CONFIG_NAME, DEV_VARIABLE, Project, Target, load_project
from pgsluice.errors import FindingError, InputError, RefusedError
from pgsluice.pipeline.adopt.baseline import Baseline, write_loaded
from pgsluice.pipeline.adopt.configuration import Configuration
from pgsluice.pipeline.adopt.failure import explain
from pgsluice.pipeline.adopt.files import Pieces, place_statements, render_files
from pgsluice.pipeline.adopt.grants import grants_from_birth, has_default_privileges, without_grants
from pgsluice.pipeline.adopt.layout import lay_out, with_layout
from pgsluice.pipeline.adopt.provided import provided_by
from pgsluice.pipeline.adopt.reading import Live, read_database
from pgsluice.pipeline.adopt.requirements import (
    OWN_SCHEMAS,
    Requirements,
    find_requirements,
    refuse_missing_extensions,
)
from pgsluice.pipeline.adopt.secrets import LeftOut
from pgsluice.pipeline.adopt.tables import with_generated_tables
from pgsluice.pipeline.adopt.unprinted import unprinted
from pgsluice.pipeline.adopt.verdict import judge
from pgsluice.pipeline.adopt.wish import Adopted, Progress, Wish
from pgsluice.pipeline.build import Task
from pgsluice.pipeline.checksum import SUM_NAME, compute_sum
from pgsluice.pipeline.devdb import bootstrap, open_dev
from pgsluice.pipeline.history import next_version
from pgsluice.pipeline.live.faithful import refuse_half_done
from pgsluice.pipeline.lockfile import LOCK_NAME, Lock
from pgsluice.pipeline.opinion import second_opinion
from pgsluice.pipeline.opinion.entries import compare_entries
from pgsluice.pipeline.proof import connected
from pgsluice.pipeline.proving import make, plan_of
from pgsluice.pipeline.snapshot import Address, compare, read_snapshot
from pgsluice.pipeline.states import States, read_states

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgsluice.pipeline.devdb import DevServer
    from pgsluice.pipeline.sources.parse import Parsed
    from pgsluice.pipeline.statement import Plan

NAME: Final = "baseline"


def adopt_database(root: Path, wish: Wish, *, progress: Progress) -> Adopted:
    """Read a database and make the project that it is; nothing is written, neither here nor there.

    Args:
        root: The project's folder, which exists: its dev server is used.
        wish: The database and what to take of it.
        progress: Gets a line for each stage that may take long.

    Raises:
        InputError: An extension is missing on the dev server, or it cannot load the schema.
        UnreachableError: The database cannot be read.
        RefusedError: The baseline cannot be planned, or an index or a partition is left half-done.
        FindingError: The files do not give the database's schema.
    """
    live = read_database(wish, progress)
    refuse_half_done(live.catalog)
    progress("starting the dev server")
    with TemporaryDirectory(prefix="pgsluice-adopt-") as folder:
        staging = Path(folder).resolve()
        _copy_requirements(root, staging, wish.requires)
        with open_dev(_dev(wish), root=root, progress=progress) as server:
            return _Adoption(staging, wish, live, server, progress).run()


def _dev(wish: Wish) -> str:
    return os.environ.get(DEV_VARIABLE) or wish.dev


def _copy_requirements(root: Path, staging: Path, requires: Sequence[str]) -> None:
    """Bring the user's own scripts to where the proof looks for them."""
    for entry in requires:
        if entry.endswith(".sql") and (root / entry).is_file():
            copy = staging / entry
            if not copy.resolve().is_relative_to(staging):
                raise InputError(f"required file {entry} lies outside of the project")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((root / entry).read_bytes())


@dataclass(frozen=True, slots=True)
class _Adoption:
    """One adoption: `staging` is a project's folder that is thrown away."""

    staging: Path
    wish: Wish
    live: Live
    server: DevServer
    progress: Progress

    def run(self) -> Adopted:
        """Requirements, schema files, comparison, baseline."""
        refuse_missing_extensions(self.server, self.live.extensions, major=self.live.catalog.major)
        statements = self.live.statements
        requirements = self._requirements(statements)
        files = self._configured(requirements)
        self._write(files)
        project = load_project(self.staging).model_copy(update={"dev": _dev(self.wish)})
        target = project.target(None)
        self.progress("loading what the schema requires")
        provided = self._provided(target)
        pieces = place_statements(
            self._completed(statements, provided),
            runner=self.live.catalog.snapshot.runner,
            ignore=target.ignore,
            provided=provided_by(provided),
            populated=self._populated(),
        )
        states = self._load_first(target, pieces)
        self.progress("comparing the files with the database")
        notes = judge(self.live.catalog, states, provided=provided, root=self.staging, progress=self.progress)
        plan, refusal = self._plan(project, target)
        if plan is not None:
            pieces, states = self._choose(target, pieces, states, plan)
        baseline = self._baseline(project, target, states, refusal)
        self.progress("laying the files out")
        lay_out(target, root=self.staging)
        migration, history = self._history(target, baseline)
        contents = {name: text.encode() for name, text in files.items()}
        contents |= {name: (self.staging / name).read_bytes() for name in self._files(target, pieces)}
        return Adopted(
            files=contents | history,
            migration=migration,
            runner=self.live.catalog.snapshot.runner,
            server=self.server.description,
            place=self.live.catalog.place,
            objects=len(states.after.objects),
            requires=requirements.entries,
            carried=requirements.reasons,
            left_out=(*self.live.left_out, *self._outside()),
            ignored=self.live.catalog.snapshot.ignored,
            notes=notes if baseline.note is None else (*notes, baseline.told),
        )

    def _completed(self, statements: Sequence[Parsed], provided: frozenset[Address]) -> Sequence[Parsed]:
        """The statements with what the dump lacks, and with the grants that a schema folder needs."""
        snapshot = self.live.catalog.snapshot
        statements = (*statements, *unprinted(snapshot))
        if not has_default_privileges(snapshot):
            return statements
        others = without_grants(statements, provided_by(provided))
        return (*others, *grants_from_birth(snapshot, but_for=provided))

    def _requirements(self, statements: Sequence[Parsed]) -> Requirements:
        return find_requirements(
            statements,
            self.live.extensions,
            own_schemas=self._own_schemas(),
            given=self.wish.requires,
            script=f"requires/{self.wish.target}.sql",
        )

    def _configured(self, requirements: Requirements) -> dict[str, str]:
        """Configuration and script."""
        configuration = Configuration(
            target=self.wish.target,
            dev=self.wish.dev,
            postgres=self.wish.postgres or self._majors(),
            manages=self.wish.schemas,
            requires=requirements.entries,
            ignore=self.live.ignore,
        )
        script = requirements.script
        extra = {} if script is None else {f"requires/{self.wish.target}.sql": script}
        return {CONFIG_NAME: configuration.render(), **extra}

    def _files(self, target: Target, pieces: Pieces) -> dict[str, str]:
        return {f"schema/{target.name}/{name}": text for name, text in render_files(pieces).items()}

    def _load(self, target: Target, pieces: Pieces) -> States:
        """Both states, with these as the whole schema."""
        shutil.rmtree(target.schema_dir, ignore_errors=True)
        target.schema_dir.mkdir(parents=True)
        self._write(self._files(target, pieces))
        return read_states(self.server, target, (), root=self.staging, progress=self.progress)

    def _load_first(self, target: Target, pieces: Pieces) -> States:
        """As `_load`; a failure is told as one of the database."""
        try:
            return self._load(target, pieces)
        except (FindingError, InputError) as exc:
            catalog = self.live.catalog
            raise explain(
                exc, self.server, target, root=self.staging, major=catalog.major, place=catalog.place
            ) from exc

    def _plan(self, project: Project, target: Target) -> tuple[Plan | None, RefusedError | None]:
        """The statements that make the schema from nothing, or why they cannot be planned."""
        try:
            return plan_of(project, target, server=self.server, progress=self.progress), None
        except RefusedError as refusal:
            return None, refusal

    def _choose(self, target: Target, pieces: Pieces, states: States, plan: Plan) -> tuple[Pieces, States]:
        """The better readable of two sets of files that give the same catalog."""
        self.progress("writing tables as migrations do")
        better = with_generated_tables(pieces, [one.sql for one in plan.statements])
        again = self._try(target, better) if better is not None else None
        if better is None or again is None:
            return pieces, self._load(target, pieces)
        if compare(states.after, again.after) or not self._dumped_alike(target, states, again):
            return pieces, self._load(target, pieces)
        return better, again

    def _try(self, target: Target, pieces: Pieces) -> States | None:
        """Both states with these files, None where they do not load: the dump's own files do."""
        try:
            return self._load(target, pieces)
        except InputError:
            return None

    def _dumped_alike(self, target: Target, one: States, other: States) -> bool:
        """Whether pg_dump prints both the same."""
        with second_opinion(self.server, target, one.goal) as opinion, self.server.clone(other.goal) as db:
            dumped = opinion.start(db)
            if dumped is None or opinion.goal is None:
                return True
            return not compare_entries(opinion.goal.result(), dumped.result())

    def _write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.staging / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")

    def _own_schemas(self) -> dict[str, str]:
        with self.server.clone(None) as conninfo, connected(conninfo) as conn:
            rows = conn.execute(OWN_SCHEMAS, [[one.name for one in self.live.extensions]]).fetchall()
        return {str(name): str(schema) for name, schema in rows}

    def _majors(self) -> tuple[int, int]:
        live = self.live.catalog.major
        return live, max(live, self.server.major)

    def _provided(self, target: Target) -> frozenset[Address]:
        name = bootstrap(self.server, target.requires, root=self.staging)
        with self.server.clone(name) as conninfo, connected(conninfo) as conn:
            return frozenset(read_snapshot(conn, manages=["*"]).objects)

    def _populated(self) -> frozenset[tuple[str, str]]:
        objects = self.live.catalog.snapshot.objects.items()
        return frozenset(
            (address.path[0], address.path[1])
            for address, obj in objects
            if address.kind == "materialized view" and not obj.get("unpopulated")
        )

    def _baseline(
        self, project: Project, target: Target, states: States, refusal: RefusedError | None
    ) -> Baseline:
        """The first migration, proved: planned, or where that is refused, what the schema files say."""
        if refusal is not None:
            loaded = write_loaded(states, progress=self.progress)
            return Baseline(loaded, Lock(schema=states.source.digest), note=refusal.message)
        task = Task(NAME, (), (), None)
        made = make(
            project, target, task, server=self.server, allow_destructive=False, progress=self.progress
        )
        text = made.rendered[0].text if made.rendered else None
        return Baseline(text, Lock(schema=made.schema_digest, made=made.schema_digest))

    def _history(self, target: Target, baseline: Baseline) -> tuple[str, dict[str, bytes]]:
        """The name of the baseline, and the files of its folder; none of them is open."""
        name = f"{next_version(target, (), now=datetime.now(UTC))}_{NAME}.sql"
        migrations = {} if baseline.text is None else {name: baseline.text.encode()}
        target.migrations_dir.mkdir(parents=True, exist_ok=True)
        recorded = compute_sum(target.migrations_dir, replace=migrations)
        major = self.server.major
        spelled = with_layout(baseline.lock, target)
        lock = replace(spelled, tool=__version__, postgres=major, history=recorded.total)
        contents = {**migrations, SUM_NAME: recorded.render(), LOCK_NAME: lock.render()}
        folder = f"migrations/{target.name}"
        return f"{folder}/{name}", {f"{folder}/{one}": text for one, text in contents.items()}

    def _outside(self) -> tuple[LeftOut, ...]:
        """What the target leaves alone; extensions' own objects go without saying."""
        return tuple(
            LeftOut(f"{len(one.names)} object(s) of {one.holder or 'no schema'}", "not managed")
            for one in self.live.catalog.outside
            if not one.holder.startswith("extension ")
        )
