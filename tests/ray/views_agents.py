"""Agents of `test_ray_session_tools`: what a session sees of others, by its tools and by the runtime it is bound to."""

from __future__ import annotations

import json
from typing import Any

import openclaw_ray as oc

__all__ = ["AGENTS", "PLANTED"]

PLANTED = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


@oc.agent(id="planter", spawns=False)
def planter(turn: oc.SyncTurn) -> str:
    """Says a credential in every way that a row can hold one."""
    turn.append("assistant", "x" * 3_990 + f" OPENAI_API_KEY={PLANTED} " + "y" * 100)
    turn.append("tool", json.dumps({"arguments": {"nested": {"refresh_token": PLANTED}}}))
    turn.append("system", f"Authorization: Bearer {PLANTED}")
    return f"id_token: {PLANTED}"


@oc.agent(id="onlooker")
def onlooker(turn: oc.SyncTurn) -> dict[str, Any]:
    """Looks at its own child and at a stranger: by tools, by the bound runtime, by the gateway, by raw handles."""
    from openclaw_ray.actors.names import find_actor
    from openclaw_ray.core.session_asks import Asker

    name, stranger = turn.input
    child = turn.spawn("plant", agent_id="planter")
    turn.join()
    said: dict[str, Any] = {"child": child.session_key, "errors": []}
    # the last rows of a session are on their way to disk when its end is told
    while (seen := turn.call("sessions_history", sessionKey=child.session_key, includeTools=True))["totalMessages"] < 5:
        turn.check()
    said["history"] = seen.to_json()
    said["listed"] = [row["key"] for row in turn.call("sessions_list")["sessions"]]
    for tool, params in (
        ("sessions_history", {"sessionKey": stranger}),
        ("sessions", {"action": "delete", "key": stranger}),
    ):
        said["errors"].append(turn.call(tool, **params)["error"])
    rt = oc.Runtime.connect(name)
    said["bound"] = [row["key"] for row in rt.sessions()]
    for ask in (
        lambda: rt.session(stranger),
        lambda: rt.history(stranger),
        lambda: rt.reset(stranger),
        lambda: rt.delete(stranger),
        lambda: rt.patch(stranger, label="x"),
        lambda: rt.call("sessions.history", {"key": stranger}),
        lambda: rt.call("sessions.delete", {"key": stranger}),
    ):
        try:
            ask()
            said["errors"].append("it was allowed")
        except oc.SessionForbidden as error:
            said["errors"].append(str(error))
    said["masked"] = [row["text"] for row in rt.history(child.session_key)]
    registry = find_actor(name, "registry")
    stale = Asker(turn.session.key, f"{turn.session.session_id}.99")
    foreign = Asker(stranger, f"{turn.session.session_id}.1")
    said["raw"] = []
    import ray

    for who in (stale, foreign):
        said["raw"].append(ray.get(registry.asked.remote(who, "list", {})).reason)
        said["raw"].append(ray.get(registry.patch.remote(who, stranger, "x")).reason)
        said["raw"].append(ray.get(registry.delete.remote(stranger, "any", 1, who)))
        try:
            ray.get(registry.view.remote("sessions", {}, 10, 0, who))
            said["raw"].append("it was allowed")
        except oc.SessionForbidden as error:
            said["raw"].append(error.reason)
    return said


AGENTS = [planter, onlooker]
