"""Which keys a client may open a session under (SPEC.md D1)."""

from __future__ import annotations

import pytest

from openclaw_ray.core.keys import main_key, mint_child, peer_key
from openclaw_ray.core.own_keys import KEY_MOST, is_opened, why_not_opened


@pytest.mark.parametrize(
    "key",
    [
        "agent:main:ada",
        "agent:formatter:session-123",
        "agent:code-reviewer:subagent-abc",
        "agent:main:direct:42",
        "AGENT:Main:Ada",
        "agent:main:discord:channel:c1",
        "agent:main:user@example.org",
        peer_key("main", "telegram", "direct", "42", dm_scope="per-account-channel-peer"),
        peer_key("main", "signal", "group", "AbC="),
    ],
)
def test_a_name_of_ones_own_is_to_be_had(key: str) -> None:
    assert why_not_opened(key) == ""
    assert is_opened(key)


@pytest.mark.parametrize(
    ("key", "word"),
    [
        (main_key("main"), "main session"),
        ("agent:main:main:ada", "main session"),
        (mint_child("main", "u"), "spawned"),
        (mint_child("main", "u", incognito=True), "spawned"),
        ("agent:main:subagent", "spawned"),
        ("agent:main:acp:u", "harness"),
        ("agent:main:cron:job", "job"),
        ("agent:main:driver:u", "root"),
        ("agent:main:dashboard:incognito-u", "dashboard"),
        ("agent:main:ada:thread:7", "thread of agent:main:ada"),
        ("agent:../x:ada", "no agent id"),
        ("agent:main:", "no session key"),
        ("agent::x", "no session key"),
        ("ada", "no session key"),
        ("", "no session key"),
        ("agent:main:a b", "spaces"),
        ("agent:main:a\nb", "spaces"),
        ("agent:main:a\u200bb", "control"),
        (f"agent:main:{'x' * KEY_MOST}", f"of at most {KEY_MOST}"),
    ],
)
def test_what_means_something_else_is_not(key: str, word: str) -> None:
    assert word in why_not_opened(key)
    assert not is_opened(key)
