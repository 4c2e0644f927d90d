"""What users command in a conversation, as words (SPEC.md B8)."""

from __future__ import annotations

import pytest

from openclaw_ray.core.policy import Sender
from openclaw_ray.core.thread_commands import (
    HOURS_MOST,
    AgentLine,
    Command,
    Verb,
    agents_text,
    command_of,
    hours_of,
    lasts_text,
)
from openclaw_ray.core.thread_rules import binder_refusal


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/focus  helper ", Command(Verb.FOCUS, "helper")),
        ("/FOCUS the Second one", Command(Verb.FOCUS, "the Second one")),
        ("/unfocus", Command(Verb.UNFOCUS)),
        ("/Session Unbind", Command(Verb.UNFOCUS)),
        ("/agents", Command(Verb.AGENTS)),
        ("/session idle", Command(Verb.IDLE)),
        ("/session idle 2", Command(Verb.IDLE, hours=2.0)),
        ("/session IDLE Off", Command(Verb.IDLE, hours=0.0)),
        ("/session max-age 1h30m", Command(Verb.MAX_AGE, hours=1.5)),
        ("/session max-age", Command(Verb.MAX_AGE)),
    ],
)
def test_what_is_a_command(text: str, command: Command) -> None:
    assert command_of(text) == command


@pytest.mark.parametrize("text", ["please /focus x", "", "  ", "hello", "/focused", "/sessions idle", "/", "/stop"])
def test_what_is_a_message(text: str) -> None:
    assert command_of(text) is None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("/focus", "/focus <label"),
        ("/unfocus now", "/unfocus: takes nothing more"),
        ("/agents all", "write /agents"),
        ("/session", "/session idle [time|off]"),
        ("/session idel 3", "/session idle [time|off]"),
        ("/session idle soon", "'soon' is no time"),
        ("/session idle 2 3", "/session idle [time|off]"),
        ("/session max-age -1", "'-1' is no time"),
    ],
)
def test_a_slip_of_the_pen_is_answered_with_the_form(text: str, word: str) -> None:
    command = command_of(text)
    assert command is not None
    assert word in command.error


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("24", 24.0),
        ("0.5", 0.5),
        ("90m", 1.5),
        ("1h30m", 1.5),
        ("2d", 48.0),
        ("1w", 168.0),
        ("36s", 0.01),
        (" OFF ", 0.0),
        ("disable", 0.0),
        ("none", 0.0),
        ("0", 0.0),
        ("0h", 0.0),
        (f"{HOURS_MOST:g}", HOURS_MOST),
    ],
)
def test_a_time_is_hours_or_has_units_and_off_is_never(text: str, hours: float) -> None:
    assert hours_of(text) == pytest.approx(hours)


@pytest.mark.parametrize(
    "text", ["", "h", "-1", "1y", "1h 30m", "1e3", "inf", "nan", "٣", "1h30", "87841", "1.h", "9" * 30]
)
def test_what_is_no_time(text: str) -> None:
    assert hours_of(text) is None


def test_what_is_said_of_a_time() -> None:
    assert lasts_text(Verb.IDLE, 24.0, 12.0, set_now=False) == (
        "idle is 1d: this conversation is unbound after 1d of silence, in 12h as it stands"
    )
    assert lasts_text(Verb.MAX_AGE, 1.5, 0.0, set_now=True) == (
        "max-age is now 1h30m: this conversation is unbound after 1h30m of age, at once as it stands"
    )
    assert lasts_text(Verb.IDLE, 0.0, None, set_now=True) == (
        "idle is now off: this conversation stays bound whatever its silence"
    )


def test_what_is_said_of_agents() -> None:
    lines = [
        AgentLine('a "b"', "agent:x:subagent:1", "running", ("t1", "t2")),
        AgentLine("c", "agent:x:subagent:2", "done"),
    ]
    assert agents_text(lines, bindable=True).splitlines() == [
        "agents:",
        '"a \\"b\\"" (running) agent:x:subagent:1 binding:t1 binding:t2',
        '"c" (done) agent:x:subagent:2 unbound',
    ]
    assert agents_text(lines[1:], bindable=False).endswith("bindings unavailable")
    assert agents_text([], bindable=True) == "agents:\n(none)"


def test_who_has_bound_a_conversation_alone_changes_that() -> None:
    ada, bob = Sender(channel="chat", id="1", name="Ada"), Sender(channel="chat", id="2", name="Ada")
    assert binder_refusal(ada.identity(), Sender(channel="chat", id="1", username="ada").identity()) == ""
    assert binder_refusal(ada.identity(), bob.identity()) == (
        "only channel:chat:1 may change this binding, who has made it; you are channel:chat:2"
    )
    assert binder_refusal(ada.identity(), "") == "only channel:chat:1 may change this binding, who has made it"
    assert binder_refusal("", bob.identity()) == "" == binder_refusal("", "")
