"""The guard of delete and reset, as the runtime's client keeps it (SPEC.md G3)."""

from __future__ import annotations

from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

import pytest

from openclaw_ray.core.errors import DeleteRefused, ResetRefused
from openclaw_ray.core.results import StopReport
from openclaw_ray.runtime.cleanup import delete_session, reset_session

KEY = "agent:w:subagent:x"


class Registry:
    """One session, to which things happen while it is stopped."""

    def __init__(self, *, starts: bool = False, asked: bool = False, made_anew: bool = False) -> None:
        self.row: dict[str, Any] = {
            "key": KEY,
            "agentId": "w",
            "sessionId": "s1",
            "activations": 1,
            "status": "ended",
        }
        self.runs = ["r1"]
        self.meanwhile = (starts, asked, made_anew)
        self.cleared: list[tuple[Any, ...]] = []
        self.stops = 0
        self.failed = 0
        self.late = False

    def query(self, what: str, *args: Any) -> Any:
        if what == "session":
            return dict(self.row) if args[0] == KEY else None
        if what == "view":
            return [{"runId": self.runs[-1]}] if self.runs else []
        if (args[1], args[2]) != (self.row["sessionId"], self.row["activations"]):
            return "changed"
        self.cleared.append((what, *args))
        return "done"

    def stop(self, key: str, *, timeout: float | None) -> StopReport:
        starts, asked, made_anew = self.meanwhile
        if starts or asked:
            self.row["activations"] += 1
        if asked:
            self.runs.append("r2")
        if made_anew:
            self.row |= {"sessionId": "s2", "activations": 5}
        self.stops += 1
        if self.late:
            raise FutureTimeout
        return StopReport(key, 1, 0, 0, self.failed)


def test_it_clears_what_was_seen() -> None:
    registry = Registry()
    assert delete_session(registry.query, registry.stop, KEY, 1.0).stopped == 1
    assert registry.cleared == [("delete", KEY, "s1", 1)]


def test_what_was_in_line_already_and_began_meanwhile_makes_no_other_session_of_it() -> None:
    registry = Registry(starts=True)
    reset_session(registry.query, registry.stop, KEY, 1.0)
    assert [call[:4] for call in registry.cleared] == [("reset", KEY, "s1", 2)]


@pytest.mark.parametrize("meanwhile", ["asked", "made_anew"])
def test_what_is_new_since_then_is_not_cleared(meanwhile: str) -> None:
    registry = Registry(**{meanwhile: True})
    with pytest.raises(ResetRefused, match="changed meanwhile"):
        reset_session(registry.query, registry.stop, KEY, 1.0)
    assert registry.cleared == []


@pytest.mark.parametrize("how", ["late", "failed"])
def test_what_could_not_be_stopped_is_not_cleared(how: str) -> None:
    registry = Registry()
    registry.late, registry.failed = how == "late", int(how == "failed")
    with pytest.raises(DeleteRefused, match="see what with `openclaw-ray sessions list`, then delete it again"):
        delete_session(registry.query, registry.stop, KEY, 1.0)
    assert registry.cleared == []


def test_what_may_never_be_cleared_is_not_even_stopped() -> None:
    registry = Registry()
    registry.row |= {"status": "archived"}
    with pytest.raises(ResetRefused, match="it was deleted"):
        reset_session(registry.query, registry.stop, KEY, 1.0)
    with pytest.raises(KeyError):
        delete_session(registry.query, registry.stop, "agent:w:subagent:nobody", 1.0)
    assert registry.stops == 0
