"""Labels of a requester's children: no two that have not ended have the same one (PROTOCOL.md 3.1).

1. A label in use refuses the second child that asks for it, before there is one; so nothing on the way of a completion
   depends on it.
2. It is free again as soon as the child that has it is terminal.
3. The index is of memory alone, made from the runs when the first labelled child is asked for.
"""

from __future__ import annotations

from openclaw_ray.core.admission import Refusal
from openclaw_ray.core.protocol.messages import Admit
from openclaw_ray.core.protocol.records import Run, Session
from openclaw_ray.core.protocol.state import State

__all__ = ["ChildNames"]

_SPARE = 64  # labels of ended children that may stay in an index before it is swept
_SHOWN = 64


class ChildNames:
    """Who has which label."""

    def __init__(self, state: State) -> None:
        self.s = state

    def taken(self, requester: Session, admit: Admit) -> Refusal | None:
        """The refusal of a label that another child has (1)."""
        if admit.label is None:
            return None
        holder = self._holder(requester, admit.label)
        if holder is None:
            return None
        shown = admit.label if len(admit.label) <= _SHOWN else admit.label[: _SHOWN - 1] + "…"
        text = f"label {shown!r} is in use by {holder.session} ({holder.state.value}); wait for its end, or say another"
        return Refusal("error", text, "label")

    def took(self, requester: Session, run: Run) -> None:
        """A child was born."""
        if run.label is not None:
            labels = self._labels(requester)
            labels[run.label] = run.id
            if len(labels) > _SPARE + 2 * requester.active:
                requester.labels = {label: of for label, of in labels.items() if self._lives(of)}

    def _holder(self, requester: Session, label: str) -> Run | None:
        run_id = self._labels(requester).get(label, "")
        return self.s.runs[run_id] if self._lives(run_id) else None

    def _lives(self, run_id: str) -> bool:
        run = self.s.runs.get(run_id)
        return run is not None and not run.terminal

    def _labels(self, requester: Session) -> dict[str, str]:
        if requester.labels is None:
            requester.labels = {
                run.label: run.id
                for run in self.s.runs.values()
                if run.label is not None and run.requester == requester.key and not run.terminal
            }
        return requester.labels
