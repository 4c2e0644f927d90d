"""Doubles and tools for tests, shipped. Nothing here imports Ray by itself.

* `run_turn` runs one turn of one agent, its children made up by the test.
* `LocalRuntime` is a runtime of threads in this process: the real rules and protocol, agents unchanged, no Ray; with
  `FakeClock`, a clock that stands still until it is told to move, nothing waits.
* `Conversations` is a channel in memory, with which a test plays the users who talk with sessions.
* `eventually` waits without sleeps in the test; `assert_at_rest` finds what a runtime, local or real, has left over;
  `ProcessMark` finds processes that a program has left behind.
* `chaos` ends processes of a running runtime at random, the same at each run of a seed.
* `simulate` runs the protocol in virtual time under the random schedule of a seed, `run_schedule` one that was put
  together by hand; see `openclaw_ray.testing.simulator`.

Most names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# at once, and small: else the names would be those of their modules, for those who have loaded them before
from openclaw_ray.testing.chaos import chaos
from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    from openclaw_ray.core.clock import FakeClock
    from openclaw_ray.core.ids import SeededIds
    from openclaw_ray.testing.conversations import Conversation, Conversations
    from openclaw_ray.testing.leaks import ProcessMark, assert_at_rest, assert_gone
    from openclaw_ray.testing.local.runtime import LocalRuntime
    from openclaw_ray.testing.one_turn import TurnRun, run_turn
    from openclaw_ray.testing.simulator import (
        Outline,
        Schedule,
        ScheduleBroken,
        Weather,
        random_schedule,
        run_schedule,
        simulate,
    )

_WHERE = {
    "Conversation": "openclaw_ray.testing.conversations",
    "Conversations": "openclaw_ray.testing.conversations",
    "FakeClock": "openclaw_ray.core.clock",
    "LocalRuntime": "openclaw_ray.testing.local.runtime",
    "Outline": "openclaw_ray.testing.simulator",
    "ProcessMark": "openclaw_ray.testing.leaks",
    "Schedule": "openclaw_ray.testing.simulator",
    "ScheduleBroken": "openclaw_ray.testing.simulator",
    "SeededIds": "openclaw_ray.core.ids",
    "TurnRun": "openclaw_ray.testing.one_turn",
    "Weather": "openclaw_ray.testing.simulator",
    "assert_at_rest": "openclaw_ray.testing.leaks",
    "assert_gone": "openclaw_ray.testing.leaks",
    "random_schedule": "openclaw_ray.testing.simulator",
    "run_schedule": "openclaw_ray.testing.simulator",
    "run_turn": "openclaw_ray.testing.one_turn",
    "simulate": "openclaw_ray.testing.simulator",
}

__all__ = [
    "Conversation",
    "Conversations",
    "FakeClock",
    "LocalRuntime",
    "Outline",
    "ProcessMark",
    "Schedule",
    "ScheduleBroken",
    "SeededIds",
    "TurnRun",
    "Weather",
    "assert_at_rest",
    "assert_gone",
    "chaos",
    "eventually",
    "random_schedule",
    "run_schedule",
    "run_turn",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
