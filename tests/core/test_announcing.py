"""Where the last word of an exchange is said (`core.protocol.announcing`)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from openclaw_ray.core.clock import FakeClock
from openclaw_ray.core.protocol.announcing import announce, place_of
from openclaw_ray.core.protocol.exchange import Exchange
from openclaw_ray.core.protocol.thread_record import Thread, ThreadKind, ThreadState, home_thread

MAIN, CHILD, OTHER = "agent:main:main", "agent:main:subagent:c", "agent:main:subagent:o"
DESK = ("chat", "", "desk")


class World:
    """As much of a registry's state as is looked at."""

    def __init__(self, *threads: Thread) -> None:
        self.threads = {thread.id: thread for thread in threads}
        depths = {MAIN: 0, CHILD: 1, OTHER: 1}
        self.sessions: dict[str, Any] = {
            key: SimpleNamespace(key=key, agent="main", depth=depth) for key, depth in depths.items()
        }
        self.clock = FakeClock()
        self.thread_news: dict[str, None] = {}
        self.touched: list[str] = []

    def touch(self, thread: Thread) -> None:
        self.touched.append(thread.id)

    def told(self, exchange: Exchange) -> dict[str, str]:
        """Conversation -> what is to be said there."""
        announce(self, exchange, "run")  # type: ignore[arg-type]
        said = {t.conversation: text for t in self.threads.values() for _, text in t.posts}
        assert list(self.thread_news) == self.touched == [t.id for t in self.threads.values() if t.posts]
        return said


def bound(session: str, conversation: str, used: float = 1.0, **more: Any) -> Thread:
    kind, state = more.pop("kind", ThreadKind.SESSION), more.pop("state", ThreadState.BOUND)
    return Thread(f"t-{conversation}", "chat", "", session, "main", kind, 0.0, used, state, conversation)


def exchange(requester: str = MAIN, at: tuple[str, ...] = DESK, said: str | None = "so") -> Exchange:
    return Exchange("x", "x", 1, requester, CHILD, "?", 1, 0.0, announce=said, at=at)


def test_the_targets_conversation_goes_first_and_of_several_the_one_last_spoken_in() -> None:
    world = World(bound(CHILD, "old"), bound(CHILD, "new", 2.0), bound(MAIN, "mine", 3.0))
    assert world.told(exchange()) == {"new": "so"}


def test_else_it_is_where_the_question_came_from() -> None:
    world = World(bound(OTHER, "else"))
    assert world.told(exchange()) == {"desk": "so"}
    [home] = [t for t in world.threads.values() if t.kind is ThreadKind.HOME]
    assert (home.session, home.channel, home.agent) == (MAIN, "chat", "main")


def test_a_conversation_that_is_still_the_requesters_is_not_made_anew() -> None:
    world = World(home_thread(*DESK, MAIN, "main", 0.0))
    assert world.told(exchange()) == {"desk": "so"}
    assert len(world.threads) == 1


def test_a_conversation_that_is_another_sessions_by_now_hears_nothing_of_it() -> None:
    assert World(bound(OTHER, "desk")).told(exchange()) == {}


def test_a_childs_conversation_that_was_unbound_is_not_given_back_to_it() -> None:
    assert World().told(exchange(requester=OTHER)) == {}
    over = bound(OTHER, "desk", state=ThreadState.ENDING)
    assert World(over).told(exchange(requester=OTHER)) == {}


def test_else_it_is_where_the_requester_is_bound() -> None:
    assert World(bound(OTHER, "mine")).told(exchange(requester=OTHER, at=())) == {"mine": "so"}


@pytest.mark.parametrize("state", [ThreadState.BINDING, ThreadState.ENDING, ThreadState.OVER])
def test_only_what_is_bound_counts(state: ThreadState) -> None:
    assert World(bound(CHILD, "c", state=state)).told(exchange(at=())) == {}


def test_an_announce_of_nothing_and_nowhere_says_nothing() -> None:
    assert World(bound(CHILD, "c")).told(exchange(said=None)) == {}
    assert World().told(exchange(at=())) == {}


def test_where_a_turn_answers_users_is_the_place_of_what_it_sends() -> None:
    home = home_thread(*DESK, MAIN, "main", 0.0)
    run: Any = SimpleNamespace(post=home.id)
    assert place_of(World(home), run) == DESK  # type: ignore[arg-type]
    home.state = ThreadState.ENDING
    assert place_of(World(home), run) == ()  # type: ignore[arg-type]
    assert place_of(World(), run) == () == place_of(World(home), None)  # type: ignore[arg-type]
