"""Credentials in a running tree (SCENARIOS.md 44): whose profile is used, rotated, rested, and what nobody gets."""

from __future__ import annotations

import asyncio
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.agents.port import SpawnRequest
from openclaw_ray.core.session_facts import ChildAsk
from openclaw_ray.store.credentials import change_usage
from openclaw_ray.testing import FakeClock, LocalRuntime, run_turn

Config = dict[str, Any]


@oc.agent(spawns=False)
def asks(turn: oc.SyncTurn) -> dict[str, Any]:
    """What it gets for ``provider profile``, with the secret: it is the test's own."""
    provider, _, profile = turn.text.partition(" ")
    got = turn.auth.get(provider, profile or None)
    return {"id": got.profile_id, "secret": got.secret, "source": got.source.value, "shown": f"{got} {got!r}"}


class B(oc.Agent):
    id = "b"

    async def on_turn(self, turn: oc.Turn) -> dict[str, Any]:
        got = await turn.auth.get(turn.text)
        return {"id": got.profile_id, "secret": got.secret, "source": got.source.value}


@oc.agent(spawns=False)
def c(turn: oc.SyncTurn) -> dict[str, Any]:
    got = turn.auth.get(turn.text)
    return {"id": got.profile_id, "secret": got.secret, "source": got.source.value}


@oc.agent(id="main")
def main(turn: oc.SyncTurn) -> list[Any]:
    """Its own, then those of a child of each other agent."""
    got = turn.auth.get(turn.text)
    receipts = [turn.spawn(turn.text, agent_id=agent) for agent in ("b", "c")]
    return [got.secret, *(done.result.raise_for_status().value["secret"] for done in turn.join(receipts))]


@oc.agent(spawns=False)
def fails_over(turn: oc.SyncTurn) -> list[str]:
    """Each key that it gets fails, up to the last one."""
    tried = []
    while True:
        try:
            got = turn.auth.get("anthropic")
        except oc.NoCredential as error:
            return [*tried, str(error)]
        tried.append(got.profile_id)
        turn.auth.failed(got, cooldown=60, reason="rate_limit")


@oc.agent(spawns=False)
def works(turn: oc.SyncTurn) -> tuple[str]:
    got = turn.auth.get("anthropic")
    turn.auth.succeeded(got)
    return (got.profile_id,)


@oc.agent(spawns=False)
def returns_it(turn: oc.SyncTurn) -> Any:
    return turn.auth.get("anthropic")


@oc.agent(spawns=False)
def raises_it(turn: oc.SyncTurn) -> None:
    got = turn.auth.get("anthropic")
    raise ValueError("cannot call with", got, f"{got:>60}")


@oc.agent
def gives_it_away(turn: oc.SyncTurn) -> None:
    turn.spawn(agent_id="c", input=turn.auth.get("anthropic"))


ALL = [main, B, c, asks, fails_over, works, returns_it, raises_it, gives_it_away]


def key(secret: str, provider: str = "anthropic") -> dict[str, str]:
    return {"type": "api_key", "provider": provider, "key": secret}


class Stores:
    """Stores of agents, each with a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, agent: str, profiles: dict[str, Any], **more: Any) -> Path:
        path = self.root / agent / "agent" / "auth-profiles.json"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps({"version": 1, "profiles": profiles, **more}))
        draft.chmod(0o600)
        draft.replace(path)
        return path

    def config(self, isolated: tuple[str, ...] = (), **more: Any) -> Config:
        entries = {agent: {"ray": {"authIsolation": True}} for agent in isolated}
        return {
            "agents": {
                "defaults": {"subagents": {"allowAgents": ["*"]}},
                "entries": {"main": {"default": True}, **entries},
            },
            "ray": {"auth": {"dir": str(self.root)}},
            **more,
        }


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    return Stores(tmp_path / "agents")


@pytest.fixture
def three(stores: Stores) -> Stores:
    """Main has p, b its own of that name, c none."""
    stores.put("main", {"anthropic:p": key("of-main"), "openai:x": key("of-openai", "openai")})
    stores.put("b", {"anthropic:p": key("of-b")})
    return stores


def value(rt: LocalRuntime, agent: str, text: str) -> Any:
    return rt.result(rt.spawn(text, agent)).raise_for_status().value


# ---------------------------------------------------------------------- whose


def test_the_agents_own_wins_and_the_fallback_says_that_it_is_one(three: Stores) -> None:
    with LocalRuntime(ALL, three.config()) as rt:
        assert value(rt, "b", "anthropic") == {"id": "anthropic:p", "secret": "of-b", "source": "agent"}
        assert value(rt, "c", "anthropic") == {"id": "anthropic:p", "secret": "of-main", "source": "shared"}
        assert value(rt, "main", "anthropic") == ["of-main", "of-b", "of-main"]
        [row, _] = rt.auth("c")["providers"]
        assert (row["next"], row["fallback"]) == ("anthropic:p", True)
        [row, _] = rt.auth("b")["providers"]
        assert (row["next"], row["fallback"]) == ("anthropic:p", False)


def test_a_profile_is_never_tried_for_another_provider(three: Stores) -> None:
    with LocalRuntime(ALL, three.config()) as rt:
        result = rt.result(rt.spawn("openai anthropic:p", "asks"))
        assert result.error is not None
        assert result.error.type == "NoCredential"
        assert "anthropic:p: provider_mismatch" in result.error.message


def test_isolation_takes_the_fallback_away_and_the_error_says_so(three: Stores) -> None:
    with LocalRuntime(ALL, three.config(isolated=("b", "c"))) as rt:
        assert value(rt, "b", "anthropic")["secret"] == "of-b"
        result = rt.result(rt.spawn("anthropic", "c"))
        assert result.error is not None
        assert result.error.type == "NoCredential"
        assert "left out by ray.authIsolation" in result.error.message
        assert str(three.root / "c") in result.error.message
        assert rt.auth("c")["providers"] == []


def test_without_a_store_nothing_is_read_and_the_error_tells_where_one_goes() -> None:
    with LocalRuntime(ALL) as rt:
        result = rt.result(rt.spawn("anthropic", "c"))
        assert result.error is not None
        assert "set agents.entries.c.agentDir or ray.auth.dir" in result.error.message
        assert rt._local.core.s.auth_scopes == dict.fromkeys(rt._local.agents(), "none")


# ---------------------------------------------------------------------- re-use


def test_a_process_is_used_again_only_by_who_has_the_same_in_reach(three: Stores) -> None:
    three.put("asks", {"anthropic:own": key("of-asks")})
    with LocalRuntime(ALL, {**three.config(), "agents": three.config()["agents"]}) as rt:
        for _ in range(2):
            for agent in ("b", "c", "works", "asks"):
                value(rt, agent, "anthropic")
        rows = {row["agentId"]: {each["actor"] for each in rt.runs(agent=row["agentId"])} for row in rt.runs()}
        assert not rows["b"] & (rows["c"] | rows["works"] | rows["asks"])
        assert not rows["asks"] & (rows["b"] | rows["c"])
        scopes = rt._local.core.s.auth_scopes
        assert scopes["c"] == scopes["works"] != scopes["b"]
        assert scopes["asks"] != scopes["c"]


def test_a_rotated_key_is_seen_at_the_next_turn_of_a_live_process(three: Stores) -> None:
    with LocalRuntime(ALL, {**three.config(), "ray": {**three.config()["ray"], "pool": {"max": 6}}}) as rt:
        before = value(rt, "c", "anthropic")
        three.put("main", {"anthropic:p": key("rotated"), "openai:x": key("of-openai", "openai")})
        after = value(rt, "c", "anthropic")
        assert (before["secret"], after["secret"]) == ("of-main", "rotated")
        assert len({row["actor"] for row in rt.runs(agent="c")}) == 1


def test_a_process_that_was_given_more_than_its_class_says_is_not_used_again(three: Stores) -> None:
    with LocalRuntime(ALL, three.config()) as rt:
        value(rt, "c", "anthropic")
        three.put("c", {"anthropic:new": key("of-c")})
        assert value(rt, "c", "anthropic")["secret"] == "of-c"
        assert rt.stats().retired == {"the credentials in its reach have changed": 1}
        value(rt, "c", "anthropic")
        assert rt.stats().retired == {"the credentials in its reach have changed": 1}


# ---------------------------------------------------------------------- rest


def test_one_profiles_failure_rests_that_one_alone_and_is_kept_in_its_store(three: Stores) -> None:
    main_store = three.put("main", {"anthropic:p": key("1"), "anthropic:q": key("2"), "openai:x": key("3", "openai")})
    three.put("fails_over", {"anthropic:r": key("4")})
    clock = FakeClock()
    with LocalRuntime(ALL, three.config(), clock=clock) as rt:
        *tried, refused = value(rt, "fails_over", "go")
        assert tried == ["anthropic:r", "anthropic:p", "anthropic:q"]
        assert "anthropic:q: cooldown for 60 s" in refused
        stats = json.loads(main_store.read_text())["usageStats"]
        assert {name: one["cooldownUntil"] for name, one in stats.items()} == {
            "anthropic:p": 1_700_000_060_000,
            "anthropic:q": 1_700_000_060_000,
        }
        assert value(rt, "c", "openai")["secret"] == "3"
        assert value(rt, "b", "anthropic")["secret"] == "of-b"  # its own of that name has not failed
        assert rt.result(rt.spawn("anthropic", "c")).error is not None
        clock.advance(61)
        assert value(rt, "c", "anthropic")["id"] in ("anthropic:p", "anthropic:q")


def test_the_longest_unused_one_is_next(three: Stores) -> None:
    three.put("works", {"anthropic:1": key("1"), "anthropic:2": key("2")})
    clock = FakeClock()
    with LocalRuntime(ALL, three.config(), clock=clock) as rt:
        used = []
        for _ in range(4):
            used += value(rt, "works", "go")
            clock.advance(0.25)
        assert used == ["anthropic:1", "anthropic:2", "anthropic:1", "anthropic:2"]


def test_that_a_profile_still_works_is_written_once_a_second(three: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    three.put("works", {"anthropic:1": key("1")})
    written: list[str] = []

    def counted(path: str, *args: Any, **options: Any) -> None:
        written.append(path)
        change_usage(path, *args, **options)

    monkeypatch.setattr("openclaw_ray.actors.auth_desk.change_usage", counted)
    clock = FakeClock()
    with LocalRuntime(ALL, three.config(isolated=("works",)), clock=clock) as rt:
        rt.map("works", ["go"] * 5, width=1)
        assert len(written) == 1
        clock.advance(1)
        rt.map("works", ["go"] * 5, width=1)
        assert len(written) == 2


def test_a_store_that_cannot_be_written_costs_a_warning_and_nothing_else(
    three: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    three.put("fails_over", {"anthropic:r": key("4")})

    def refuse(path: str, *_: Any, **__: Any) -> None:
        raise oc.CredentialStoreError(path, "is read-only")

    monkeypatch.setattr("openclaw_ray.actors.auth_desk.change_usage", refuse)
    with LocalRuntime(ALL, three.config(isolated=("fails_over",))) as rt:
        tried, refused = value(rt, "fails_over", "go")
        assert tried == "anthropic:r"
        assert "cooldown for 60 s" in refused
        texts = [event.text for event in rt._events_after(0, 0) if event.kind == "warning"]
        assert len(texts) == 1
        assert "is read-only" in str(texts[0])


# ---------------------------------------------------------------------- orders, pins, references


def test_the_configured_order_counts_and_leaves_out(three: Stores) -> None:
    three.put("c", {"anthropic:1": key("1"), "anthropic:2": key("2")})
    with LocalRuntime(ALL, three.config(auth={"order": {"anthropic": ["anthropic:2"]}})) as rt:
        assert value(rt, "c", "anthropic")["id"] == "anthropic:2"
        [row, _] = rt.auth("c")["providers"]
        assert row["orderFrom"] == "auth.order"
        assert {"profileId": "anthropic:1", "reason": "excluded_by_auth_order"} in row["excluded"]


def test_the_profile_that_a_sessions_model_pins_leads_and_rests_like_others(three: Stores) -> None:
    three.put("c", {"anthropic:1": key("1"), "anthropic:2": key("2")})
    three.put("fails_over", {"anthropic:1": key("1"), "anthropic:2": key("2")})
    with LocalRuntime(ALL, three.config(isolated=("c", "fails_over"))) as rt:

        def pinned(agent: str) -> Any:
            asked = SpawnRequest("anthropic", agent, ask=ChildAsk(model="anthropic/sonnet@anthropic:2"))
            receipt = rt._client.requester.spawn([asked])[0].result()
            assert rt.auth(receipt.session_key)["pin"] == "anthropic:2"
            return rt.result(receipt).raise_for_status().value

        assert pinned("c")["id"] == "anthropic:2"
        assert pinned("fails_over")[:2] == ["anthropic:2", "anthropic:1"]


def test_a_reference_leads_to_the_environment_or_says_that_it_does_not(
    three: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENCLAW_TEST_KEY", "of-the-environment")
    three.put(
        "asks",
        {
            "anthropic:1": key("${OPENCLAW_TEST_KEY}"),
            "anthropic:2": {
                "type": "api_key",
                "provider": "anthropic",
                "keyRef": {"source": "env", "provider": "default", "id": "OPENCLAW_TEST_UNSET"},
            },
        },
    )
    with LocalRuntime(ALL, three.config(isolated=("asks",))) as rt:
        assert value(rt, "asks", "anthropic")["secret"] == "of-the-environment"
        result = rt.result(rt.spawn("anthropic anthropic:2", "asks"))
        assert result.error is not None
        assert "anthropic:2: unresolved_ref" in result.error.message


def test_a_reference_to_a_file_or_a_program_is_read_when_its_profile_is_next(
    three: Stores, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The first profile's program fails: the next one is used, and what the program says is nowhere."""
    file, ran = tmp_path / "keys.json", tmp_path / "ran"
    file.write_text('{"acme": "of-the-file"}')
    file.chmod(0o600)
    vault = tmp_path / "vault"
    vault.write_text(f"#!/bin/sh\necho ran >> {ran}\necho sk-leaked-by-the-program >&2\necho sk-leaked-too\nexit 4\n")
    vault.chmod(0o700)
    providers = {
        "vault": {"source": "exec", "command": str(vault), "jsonOnly": False, "timeoutMs": 60_000},
        "files": {"source": "file", "path": str(file)},
    }
    refs = {"1": ("exec", "vault", "acme/key"), "2": ("file", "files", "/acme"), "3": ("file", "files", "/other")}
    entries = {
        f"anthropic:{number}": {
            "type": "api_key",
            "provider": "anthropic",
            "keyRef": {"source": source, "provider": provider, "id": name},
        }
        for number, (source, provider, name) in refs.items()
    }
    three.put("asks", entries, order={"anthropic": list(entries)})
    settings = three.config(isolated=("asks",), secrets={"providers": providers})
    with caplog.at_level("DEBUG"), LocalRuntime(ALL, settings) as rt:
        view = rt.auth("asks")
        [row] = view["providers"]
        assert (row["next"], [one["profileId"] for one in row["excluded"]]) == ("anthropic:1", ["anthropic:3"])
        assert not ran.exists()  # to look runs nothing
        assert value(rt, "asks", "anthropic")["secret"] == "of-the-file"
        file.write_text('{"acme": "rotated"}')
        assert value(rt, "asks", "anthropic")["secret"] == "rotated"
        assert ran.read_text() == "ran\n" * 2
        result = rt.result(rt.spawn("anthropic anthropic:1", "asks"))
        assert result.error is not None
        why = "anthropic:1: unresolved_ref (secrets.providers.vault: its command has failed with status 4)"
        assert why in result.error.message
        told = json.dumps([view, rt.runs(), rt.sessions()], default=str) + str(result) + caplog.text
        assert "sk-leaked" not in told


def test_a_corrupt_store_is_told_of_by_its_path(three: Stores) -> None:
    path = three.put("c", {})
    path.write_text('{"profiles": {"a": "sk-secret')
    with LocalRuntime(ALL, three.config()) as rt:
        result = rt.result(rt.spawn("anthropic", "c"))
        assert result.error is not None
        assert result.error.type == "CredentialStoreError"
        assert str(path) in result.error.message
        assert "sk-secret" not in str(result.error)
        [row, _] = rt.auth("c")["stores"]
        assert "is not JSON" in row["error"]


# ---------------------------------------------------------------------- what nobody gets


def test_a_credential_does_not_show_itself_and_does_not_travel() -> None:
    made = oc.Credential("anthropic", "anthropic:p", "api_key", "agent", "sk-secret")
    shown = f"{made} {made!r} {made:>80} {made!s} {[made]} {vars(oc.Credential).keys()} {dir(made)}"
    assert "sk-secret" not in shown
    for travel in (pickle.dumps, json.dumps):
        with pytest.raises((oc.PickleRefused, TypeError)) as refused:
            travel(made)
        assert "sk-secret" not in str(refused.value)
    with pytest.raises(AttributeError):
        made.provider = "openai"


@pytest.mark.parametrize("agent", ["returns_it", "raises_it", "gives_it_away"])
def test_no_way_out_of_a_turn_takes_a_credential_along(three: Stores, agent: str) -> None:
    with LocalRuntime(ALL, three.config()) as rt:
        receipt = rt.spawn("go", agent)
        result = rt.result(receipt)
        assert result.error is not None
        told = f"{result} {rt.runs()} {rt.history(receipt.session_key)} {rt._events_after(0, 0)}"
        assert "of-main" not in told
        assert b"of-main" not in pickle.dumps(result)


def test_a_turn_that_has_ended_gets_nothing(three: Stores) -> None:
    from openclaw_ray.core.auth import AuthAsk

    with LocalRuntime(ALL, three.config()) as rt:
        receipt = rt.spawn("anthropic", "c")
        rt.result(receipt)
        session = rt.session(receipt.session_key)
        assert session is not None
        answer = rt._local.auth_desk.answer(receipt.session_key, f"{session['sessionId']}.1", AuthAsk("anthropic"))
        assert isinstance(answer, oc.ProtocolRefused)


# ---------------------------------------------------------------------- doubles


def test_a_tests_own_credentials_stand_in_for_the_shared_store() -> None:
    with LocalRuntime(ALL, auth={"anthropic": "made up"}) as rt:
        assert value(rt, "c", "anthropic") == {"id": "anthropic:default", "secret": "made up", "source": "shared"}
        assert value(rt, "works", "go") == ("anthropic:default",)
        *tried, _ = value(rt, "fails_over", "go")
        assert tried == ["anthropic:default"]
    ran = run_turn(fails_over, auth={"profiles": {"anthropic:1": key("1"), "anthropic:2": key("2")}})
    assert ran.result.raise_for_status().value[:2] == ["anthropic:1", "anthropic:2"]
    assert run_turn(c, "openai", auth={"anthropic": "made up"}).result.error is not None


@oc.agent
async def beside(turn: oc.Turn) -> list[str]:
    got = await asyncio.gather(*(turn.auth.get(provider) for provider in ("anthropic", "openai")))
    return [one.secret for one in got]


def test_two_are_asked_for_side_by_side() -> None:
    assert run_turn(beside, auth={"anthropic": "1", "openai": "2"}).result.value == ["1", "2"]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda turn: turn.auth.get(""),
        lambda turn: turn.auth.get("anthropic", 3),
        lambda turn: turn.auth.failed("anthropic:default", cooldown=-1),
        lambda turn: turn.auth.failed("anthropic:default", reason="bad luck"),
        lambda turn: turn.auth.succeeded(3),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: Any) -> None:
    @oc.agent
    def agent(turn: oc.SyncTurn) -> None:
        wrong(turn)

    result = run_turn(agent, auth={"anthropic": "made up"}).result
    assert result.error is not None
    assert result.error.type == "ValueError"
