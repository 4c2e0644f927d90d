"""Section 3 of the cases' README: each group's inputs, put to the library's pure entry points."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from openclaw_ray import config
from openclaw_ray.core import admission, announce, history, keys, targets, tokens, visibility
from openclaw_ray.core.auth import AuthRules, order_profiles
from openclaw_ray.core.ids import RandomIds
from openclaw_ray.core.subagent_rows import ChildFacts

from .liveness_adapter import liveness_case
from .model_adapter import model_case
from .policy_adapter import policy_case
from .spawn_adapter import spawn_case

__all__ = ["ADAPTERS", "config_output"]

Output = dict[str, Any]


def session_keys(case: dict[str, Any]) -> Output:
    """Keys, depth, role, ids."""
    match case["op"]:
        case "inspect":
            return dataclasses.asdict(keys.inspect(case["key"]))
        case "depth":
            return {"depth": keys.depth(case["key"], case["store"])}
        case "role":
            return dataclasses.asdict(keys.role(case["depth"], case["max_spawn_depth"]))
        case "agent_id":
            made = keys.normalise_agent_id(case["value"])
            return {"valid": made is not None, "normalised": made}
        case "peer_key":
            named = {part: case[part] for part in ("dm_scope", "account_id", "identity_links")}
            place = (case[part] for part in ("agent_id", "channel", "peer_kind", "peer_id"))
            return {"key": keys.peer_key(*place, **named)}
        case "mint":
            return {"key": keys.mint_child(case["agent_id"], RandomIds().uuid())}
    raise ValueError(case["op"])


def silence_tokens(case: dict[str, Any]) -> Output:
    """Control tokens."""
    return dataclasses.asdict(tokens.silence(case["text"], case["context"]))


def announces(case: dict[str, Any]) -> Output:
    """What a finished child hands up."""
    match case["op"]:
        case "result":
            outcome = case["outcome"]
            chosen = announce.select_result(
                outcome["status"],
                case["messages"],
                error=outcome.get("error"),
                expects_completion=case["expects_completion"],
                killed=case["killed"],
            )
            return dataclasses.asdict(chosen)
        case "status_label":
            outcome = case["outcome"]
            return {"label": announce.status_label(outcome["status"], outcome.get("error"))}
        case "duration":
            return {"text": announce.duration(case["ms"])}
        case "token_count":
            return {"text": announce.token_count(case["tokens"])}
        case "stats":
            start, end = case["started_at"], case["ended_at"]
            runtime = None if start is None or end is None else end - start
            counts = (case[part] for part in ("input_tokens", "output_tokens", "total_tokens"))
            return {"line": announce.stats_line(runtime, *counts)}
        case "findings_order":
            rows = [
                announce.Finding(
                    row["runId"],
                    row["childSessionKey"],
                    row["createdAt"],
                    row.get("endedAt"),
                    row.get("generation", 0),
                )
                for row in case["children"]
            ]
            return {"run_ids": [row.run_id for row in announce.findings_order(rows)]}
        case "idempotency_key":
            return {"key": announce.idempotency_key(case["child_session_key"], case["run_id"])}
        case "retry_ladder":
            return _ladder(announce.RetryLadder(tuple(case["waits"])), case["fail_first"])
        case "route":
            sessions = {
                key: announce.SessionLink(row["exists"], row.get("requester"))
                for key, row in case["sessions"].items()
            }
            return dataclasses.asdict(announce.route(case["requester_key"], sessions.get))
    raise ValueError(case["op"])


def _ladder(ladder: announce.RetryLadder, fail_first: int) -> Output:
    at, times, failed = 0.0, [0.0], 0
    while failed < fail_first:
        failed += 1
        wait = ladder.wait_after(failed)
        if wait is None:
            return {"attempt_times": times, "final": "failed"}
        at += wait
        times.append(at)
    return {"attempt_times": times, "final": "delivered"}


def allow_agents(case: dict[str, Any]) -> Output:
    """Whom a requester may name."""
    loaded = config.load(case["config"], env={})
    limits = loaded.agent_limits(case["requester"])
    configured = frozenset(loaded.agent_ids)
    facts = admission.SpawnFacts(
        requester_key=keys.main_key(limits.agent_id),
        requester_agent=limits.agent_id,
        depth=0,
        active_children=0,
        operator=False,
        agent_id=case["requested"],
        stopping=False,
    )
    bounds = admission.SpawnLimits(
        max_spawn_depth=5,
        max_children=5,
        require_agent_id=limits.require_agent_id,
        allow_agents=limits.allow_agents,
        configured=configured,
    )
    refusal = admission.check_spawn(facts, bounds)
    return {
        "outcome": "allowed" if refusal is None else refusal.status,
        "listed": admission.listed(limits.agent_id, limits.allow_agents, configured),
    }


def histories(case: dict[str, Any]) -> Output:
    """Views, masking, pages."""
    match case["op"]:
        case "view":
            return history.view(case["messages"], include_tools=case["include_tools"]).to_json()
        case "redact":
            return history.redact(case["text"])._asdict()
        case "page":
            try:
                seqs, further = history.page(case["total"], case["limit"], case["offset"])
            except ValueError as error:
                return {"error": str(error)}
            return {"seqs": list(seqs), "nextOffset": further, "hasMore": further is not None}
    raise ValueError(case["op"])


def a2a_policy(case: dict[str, Any]) -> Output:
    """Whether one session may use another."""
    rules = config.load(case["config"], env={}).runtime_limits(cpus=1).sessions
    requester = keys.normalise_key(case["requester_key"])
    target = requester if case["target_key"] == "current" else case["target_key"]
    links = {keys.normalise_key(key) for key in case.get("target_row", {}).values()}
    viewer = visibility.Viewer(requester, case["sandboxed"])
    return {"allowed": visibility.check_access(rules, viewer, target, spawned=requester in links) is None}


def target_resolution(case: dict[str, Any]) -> Output:
    """Which run a typed target means."""
    children = [
        ChildFacts(
            row["runId"],
            row["childSessionKey"],
            "",
            "running" if row.get("endedAt") is None else "succeeded",
            row["task"],
            row["createdAt"],
            "pending",
            row.get("label"),
            row.get("taskName"),
            pending=row.get("pendingDescendants", 0),
            started_at=row.get("startedAt"),
            ended_at=row.get("endedAt"),
        )
        for row in case["runs"]
    ]
    found = targets.resolve(case["target"], children, case["now"], case["recent_minutes"])
    return {"error": found.error} if found.child is None else {"run_id": found.child.run_id}


def configs(case: dict[str, Any]) -> Output:
    """A configuration, as text or object."""
    try:
        text = case.get("text")
        loaded = config.load(case["config"], env={}) if text is None else config.loads(text, env={})
    except config.ConfigError as error:
        fault = error.faults[0]
        return {"ok": False, "path": fault.path, "near": fault.near, "kind": fault.kind}
    return config_output(loaded)


def config_output(loaded: config.Config) -> Output:
    """What is said of an accepted configuration."""
    in_force = {one.name: one.value for one in loaded.settings(shown=False)}
    return {"ok": True, "effective": in_force, "tolerated": list(loaded.tolerated)}


def auth(case: dict[str, Any]) -> Output:
    """Which credential profiles an agent tries, in which order."""
    said = case["config"].get("auth", {})
    rules = AuthRules(
        order={of: tuple(ids) for of, ids in said.get("order", {}).items()},
        profiles={name: (one["provider"], one["mode"]) for name, one in said.get("profiles", {}).items()},
    )
    found = order_profiles(
        case["provider"],
        agent_store=case["agent_store"],
        shared_store=case["shared_store"],
        now=case["now"],
        rules=rules,
        pin=case["session_pin"],
    )
    return {"order": list(found.order), "excluded": dict(found.excluded), "used": dict(found.used)}


ADAPTERS: dict[str, Callable[[dict[str, Any]], Output]] = {
    "a2a_policy": a2a_policy,
    "allow_agents": allow_agents,
    "announce": announces,
    "auth": auth,
    "config": configs,
    "history": histories,
    "liveness": liveness_case,
    "model_thinking": model_case,
    "session_keys": session_keys,
    "spawn_params": spawn_case,
    "target_resolution": target_resolution,
    "tokens": silence_tokens,
    "tool_policy": policy_case,
}
"""Group -> adapter; groups without one are reported as not yet run."""
