"""A run as the rules of a run's life tell it, in memory: what the database is compared with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .engine import Step

Key = tuple[str, int]

OPEN: Final = ("queued", "started")
ENDED: Final = ("completed", "skipped")
RECOVERIES: Final = 3
FLOW_MAX_ATTEMPTS: Final = 3


@dataclass(slots=True)
class TaskModel:
    """A task: one claim after the other, until it ends."""

    status: str = "queued"
    attempts: int = 0
    recoveries: int = 0
    is_stalled: bool = False
    output: Any = None


@dataclass(slots=True)
class StepModel:
    """A step of the run."""

    step: Step
    status: str = "created"
    reason: str | None = None
    output: Any = None
    tasks: list[TaskModel] = field(default_factory=list)


def contains(whole: Any, part: Any) -> bool:
    """Whether JSON contains JSON, as the operator `@>` has it below the top level."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and contains(whole[key], value) for key, value in part.items()
        )
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(contains(one, value) for one in whole) for value in part)
    # True equals 1 in Python, and not in JSON.
    return type(whole) is type(part) and bool(whole == part)


class Run:
    """A run: started when it is made, then told what its workers do."""

    def __init__(self, steps: Sequence[Step], value: Any) -> None:
        """Start a run of a flow with these steps and this input."""
        self.status = "started"
        self.input = value
        self.output: Any = None
        self.steps = {step.slug: StepModel(step) for step in steps}
        self._advance()

    def task(self, key: Key) -> TaskModel | None:
        """A task by step and index."""
        tasks = self.steps[key[0]].tasks
        return tasks[key[1]] if key[1] < len(tasks) else None

    def task_keys(self, *statuses: str) -> list[Key]:
        """The keys of the tasks that have one of these statuses; all without any."""
        return [
            (slug, index)
            for slug, state in sorted(self.steps.items())
            for index, task in enumerate(state.tasks)
            if not statuses or task.status in statuses
        ]

    def input_of(self, key: Key) -> Any:
        """What a task's worker gets."""
        state = self.steps[key[0]]
        return self._elements(state)[key[1]] if state.step.type == "map" else self._outputs(state)

    def flow_input_of(self, key: Key) -> Any:
        """What a task's worker gets of the run's input itself."""
        step = self.steps[key[0]].step
        return self.input if step.type == "single" and not step.deps else None

    def claim(self, keys: Iterable[Key]) -> list[Key]:
        """Claim those of the tasks that are queued."""
        claimed = [key for key in keys if (task := self.task(key)) and task.status == "queued"]
        for key in claimed:
            task = self.task(key)
            assert task is not None
            task.status = "started"
            task.attempts += 1
        return claimed

    def complete(self, key: Key, output: Any) -> None:
        """A worker's result; too late unless the task is started."""
        task, state = self.task(key), self.steps[key[0]]
        if task is None or task.status != "started":
            return
        feeds_map = any(child.step.type == "map" for child in self._children(key[0]))
        if state.step.type == "single" and feeds_map and not isinstance(output, list):
            task.status, task.output = "failed", output
            self._fail(state)
            return
        task.status, task.output = "completed", output
        if all(one.status == "completed" for one in state.tasks):
            state.status = "completed"
            state.output = [one.output for one in state.tasks] if state.step.type == "map" else output
            self._advance()

    def fail(self, key: Key) -> None:
        """A worker's exception; too late unless the task is started."""
        task, state = self.task(key), self.steps[key[0]]
        if task is None or task.status != "started":
            return
        limit = state.step.max_attempts
        if not task.is_stalled and task.attempts < (FLOW_MAX_ATTEMPTS if limit is None else limit):
            task.status = "queued"
            return
        task.status = "failed"
        if state.step.when_exhausted == "fail":
            self._fail(state)
            return
        self._skip(state, "handler_failed", cascades=state.step.when_exhausted == "skip-cascade")
        self._advance()

    def recover(self, keys: Iterable[Key]) -> int:
        """Tasks whose workers are silent go back to their queues, up to a limit: how many."""
        count = 0
        for key in keys:
            task = self.task(key)
            if task is None or task.status != "started" or task.is_stalled:
                continue
            if task.recoveries < RECOVERIES:
                task.status = "queued"
                task.recoveries += 1
                count += 1
            else:
                task.is_stalled = True
        return count

    def _parents(self, state: StepModel) -> list[StepModel]:
        return [self.steps[slug] for slug in state.step.deps]

    def _children(self, slug: str) -> list[StepModel]:
        return [state for state in self.steps.values() if slug in state.step.deps]

    def _ready(self) -> list[StepModel]:
        return [
            state
            for state in self.steps.values()
            if state.status == "created" and all(one.status in ENDED for one in self._parents(state))
        ]

    def _outputs(self, state: StepModel) -> dict[str, Any]:
        return {one.step.slug: one.output for one in self._parents(state) if one.status == "completed"}

    def _is_met(self, state: StepModel) -> bool:
        step = state.step
        subject = self._outputs(state) if step.deps else self.input
        required = step.required is None or contains(subject, step.required)
        return required and (step.forbidden is None or not contains(subject, step.forbidden))

    def _elements(self, state: StepModel) -> list[Any]:
        """What a ready step has a task for."""
        if state.step.type == "single":
            return [None]
        parents = self._parents(state)
        value = parents[0].output if parents else self.input
        if parents and parents[0].status == "skipped":
            return []
        assert isinstance(value, list)
        return value

    def _advance(self) -> None:
        """Decide what becomes of ready steps, again and again; start the rest; end the run."""
        while ready := self._ready():
            unmet = [state for state in ready if not self._is_met(state)]
            if failing := [state for state in unmet if state.step.when_unmet == "fail"]:
                self._fail(failing[0])
                return
            for state in unmet:
                self._skip(state, "condition_unmet", cascades=state.step.when_unmet == "skip-cascade")
            if any(state.step.when_unmet == "skip" for state in unmet):
                continue
            # Without tasks, and with its condition met: completed, as is what that makes ready.
            while done := [one for one in self._ready() if self._is_met(one) and not self._elements(one)]:
                for state in done:
                    state.status, state.output = "completed", []
            if all(self._is_met(state) for state in self._ready()):
                break
        for state in self._ready():
            state.status = "started"
            state.tasks = [TaskModel() for _ in self._elements(state)]
        if all(state.status in ENDED for state in self.steps.values()):
            self.status = "completed"
            leaves = {
                slug: state.output
                for slug, state in self.steps.items()
                if state.status == "completed" and not self._children(slug)
            }
            self.output = leaves or None

    def _skip(self, state: StepModel, reason: str, *, cascades: bool) -> None:
        state.status, state.reason = "skipped", reason
        self._close(state, "skipped")
        if cascades:
            for child in self._children(state.step.slug):
                if child.status in ("created", "started"):
                    self._skip(child, "dependency_skipped", cascades=True)

    def _fail(self, state: StepModel) -> None:
        state.status = "failed"
        self.status = "failed"
        for one in self.steps.values():
            self._close(one, "cancelled")

    def _close(self, state: StepModel, status: str) -> None:
        for task in state.tasks:
            if task.status in OPEN:
                task.status = status
