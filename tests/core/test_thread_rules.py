"""What is in force for bindings, and when they end (SPEC.md A3, B9)."""

from __future__ import annotations

import pickle

import pytest

from openclaw_ray import config
from openclaw_ray.core.thread_rules import HOUR, Bindings, ThreadEnd, ThreadRules, binding_refusal, end_of

WRITTEN = {
    "session": {"threadBindings": {"idleHours": 5, "defaultSpawnContext": "isolated"}},
    "channels": {
        "discord": {
            "threadBindings": {"idleHours": 7, "maxAgeHours": 9},
            "accounts": {"work": {"threadBindings": {"idleHours": 0, "spawnSubagentSessions": False}}},
        },
        "sms": {},
    },
}


def rules(written: dict[str, object]) -> ThreadRules:
    return config.load(written, env={}).runtime_limits(cpus=1).threads


@pytest.mark.parametrize(
    ("place", "bindings"),
    [
        (("discord", "work"), Bindings(True, 0.0, 9.0, False, "isolated")),
        (("discord", ""), Bindings(True, 7.0, 9.0, True, "isolated")),
        (("discord", "home"), Bindings(True, 7.0, 9.0, True, "isolated")),
        (("sms", ""), Bindings(True, 5.0, 0.0, True, "isolated")),
        (("elsewhere", ""), Bindings(True, 5.0, 0.0, True, "isolated")),
    ],
)
def test_the_account_goes_before_the_channel_and_that_before_the_session_key_by_key(
    place: tuple[str, str], bindings: Bindings
) -> None:
    assert rules(WRITTEN).of(*place) == bindings


def test_what_is_built_in() -> None:
    assert rules({}).of("any") == Bindings(True, 24.0, 0.0, True, "fork")


def test_limits_with_rules_travel() -> None:
    assert pickle.loads(pickle.dumps(rules(WRITTEN))) == rules(WRITTEN)


@pytest.mark.parametrize(
    ("bindings", "used", "now", "end"),
    [
        (Bindings(), 0.0, 24 * HOUR - 1, None),
        (Bindings(), 0.0, 24 * HOUR, ThreadEnd.IDLE),
        (Bindings(), 10 * HOUR, 24 * HOUR, None),
        (Bindings(idle_hours=0), 0.0, 9_999 * HOUR, None),
        (Bindings(idle_hours=0, max_age_hours=2), 0.0, 2 * HOUR - 1, None),
        (Bindings(idle_hours=0, max_age_hours=2), 2 * HOUR - 1, 2 * HOUR, ThreadEnd.MAX_AGE),
        (Bindings(idle_hours=0.5), 0.0, 0.5 * HOUR, ThreadEnd.IDLE),
    ],
)
def test_a_binding_ends_by_silence_or_age_and_zero_is_never(
    bindings: Bindings, used: float, now: float, end: ThreadEnd | None
) -> None:
    assert end_of(bindings, 0.0, used, now) == end


def test_who_may_bind() -> None:
    assert binding_refusal(Bindings()) is None
    assert binding_refusal(None) is not None
    assert binding_refusal(Bindings(enabled=False)) is not None
    assert binding_refusal(Bindings(spawn_sessions=False)) is not None
