"""Plants distinctive keys, runs a tree over them on a Ray of its own, and looks for the keys wherever they must not be.

Usage: ``python auth_program.py FOLDER``; one of the keys is in the environment as ``OPENCLAW_TEST_KEY``. Prints a JSON
object: what the tree answered, and for each place the keys that were found there.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import sys
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import auth_agents
import ray

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually

FOLDER = Path(sys.argv[1])
KEYS = {name: f"sk-{name}-{uuid.uuid4().hex}" for name in ("shared", "own", "openai", "file", "program")}
KEYS["env"] = os.environ["OPENCLAW_TEST_KEY"]


def put(agent: str, profiles: dict[str, Any]) -> None:
    place = FOLDER / "agents" / agent / "agent"
    place.mkdir(parents=True, mode=0o700, exist_ok=True)
    draft = place / "draft"
    draft.write_text(json.dumps({"version": 1, "profiles": profiles}))
    draft.chmod(0o600)
    draft.replace(place / "auth-profiles.json")


def key(provider: str, secret: str) -> dict[str, str]:
    return {"type": "api_key", "provider": provider, "key": secret}


def ref(provider: str, source: str, name: str) -> dict[str, Any]:
    """A profile whose key is somewhere else."""
    place = {"source": source, "provider": "file" if source == "file" else "program", "id": name}
    return {"type": "api_key", "provider": provider, "keyRef": place}


def providers() -> dict[str, Any]:
    """A file and a program that have keys; the program says one on its standard error, too."""
    file, program = FOLDER / "keys.json", FOLDER / "gives"
    file.write_text(json.dumps({"key": KEYS["file"]}))
    file.chmod(0o600)
    program.write_text(f"#!/bin/sh\necho {KEYS['program']} >&2\necho {KEYS['program']}\n")
    program.chmod(0o700)
    return {
        "file": {"source": "file", "path": str(file)},
        "program": {"source": "exec", "command": str(program), "jsonOnly": False, "timeoutMs": 60_000},
    }


def found_in(data: bytes) -> set[str]:
    return {name for name, secret in KEYS.items() if secret.encode() in data}


def files(folder: Path) -> Iterator[bytes]:
    for path in folder.rglob("*"):
        if path.is_file():
            with contextlib.suppress(OSError):
                yield path.read_bytes()


def memory(pid: int) -> Iterator[bytes]:
    """What a process can write to, area by area."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            place, rights, *_ = line.split()
            start, end = (int(number, 16) for number in place.split("-"))
            if "rw" not in rights or end - start > 1 << 30 or "/dev/shm" in line:
                continue
            with contextlib.suppress(OSError):
                mem.seek(start)
                yield mem.read(end - start)


def all_in(parts: Iterable[bytes]) -> list[str]:
    found: set[str] = set()
    for part in parts:
        found |= found_in(part)
    return sorted(found)


def main() -> dict[str, Any]:
    shared = {
        "anthropic:p": key("anthropic", KEYS["shared"]),
        "openai:p": key("openai", KEYS["openai"]),
        "local:p": key("local", "${OPENCLAW_TEST_KEY}"),
        "filed:p": ref("filed", "file", "/key"),
        "asked:p": ref("asked", "exec", "team/key"),
    }
    put("main", shared)
    put("b", {"anthropic:p": key("anthropic", KEYS["own"])})
    config: dict[str, Any] = {
        "agents": {
            "defaults": {"subagents": {"allowAgents": ["*"]}},
            "entries": {"main": {"default": True}, "shut": {"ray": {"authIsolation": True}}},
        },
        "ray": {"auth": {"dir": str(FOLDER / "agents")}, "pool": {"max": 6, "prewarm": 2}},
        "secrets": {"providers": providers()},
    }
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=True)
    session_dir = Path(ray._private.worker.global_worker.node.get_session_dir_path())
    state = FOLDER / "state"
    with oc.Runtime.start(config=config, agents=auth_agents.ALL, state_dir=state) as rt:
        tree = rt.ask("main", "go")
        local = rt.result(rt.spawn("local", "gets")).raise_for_status().value
        elsewhere = [rt.result(rt.spawn(name, "gets")).raise_for_status().value for name in ("filed", "asked")]
        pids = [result.value for result in rt.map("shut", [str(n) for n in range(3)], width=1)]
        lengths = [rt.result(rt.spawn("anthropic", "gets")).value["length"]]
        put("main", {**shared, "anthropic:p": key("anthropic", KEYS["shared"] + "-rotated")})
        again = rt.result(rt.spawn("anthropic", "gets")).value
        lengths.append(again["length"])

        info = rt._query("info")
        warm = set(info["counts"]["pids"]) - set(pids)
        os.kill(info["pid"], signal.SIGKILL)
        back = rt.result(rt.spawn("anthropic", "gets")).value

        held = rt.spawn(f"{FOLDER} openai", "holds")
        said = FOLDER / "held"
        holder = int(eventually(lambda: said.read_text() if said.exists() else ""))
        seen: dict[str, list[str]] = {"holder's memory": all_in(memory(holder))}
        everybody = rt.stats()
        crew = rt._query("info")["counts"]["pids"]
        seen["environments"] = all_in(Path(f"/proc/{pid}/environ").read_bytes() for pid in crew)
        seen["memory of one with nothing in reach"] = all_in(memory(pids[-1]))
        (FOLDER / "open").touch()
        rt.result(held)

        views = [rt.auth("main"), rt.auth("b"), rt.auth("shut"), rt.runs(limit=100), rt.sessions(limit=100), everybody]
        seen["views"] = sorted(found_in(repr(views).encode()))
        results = [tree, *(rt.result(rt.spawn("anthropic", agent)) for agent in ("fails", "shut"))]
        seen["results"] = sorted(found_in(pickle.dumps(results) + repr(results).encode()))
        seen["children's environments"] = sorted(found_in((local["env"] + again["env"]).encode()))
        named = ray.util.list_named_actors(all_namespaces=True)
        seen["Ray's state"] = sorted(found_in(repr([named, ray._private.state.actors()]).encode()))
        seen["state dir while it runs"] = all_in(files(state))
        fallback = rt.auth("gets")["providers"][0]["fallback"]
        config["agents"]["entries"]["gets"] = {"ray": {"authIsolation": True}}
        changed = [(one.name, one.takes_effect) for one in rt.reload_config(config)]
        refused = rt.result(rt.spawn("anthropic", "gets")).error
    seen["state dir"] = all_in(files(state))
    ray.shutdown()
    seen["Ray's session dir"] = all_in(files(session_dir))
    answer = tree.value
    return {
        "seen": seen,
        "sources": {agent: answer[agent]["source"] for agent in ("gets", "b")},
        "failed": answer["failed"].to_json(),
        "local": local["length"] == len(KEYS["env"]),
        "elsewhere": [one["length"] for one in elsewhere] == [len(KEYS["file"]), len(KEYS["program"])],
        "rotated": lengths[1] - lengths[0],
        "of its own class": set(pids).isdisjoint({answer["gets"]["pid"], answer["b"]["pid"], holder}),
        "apart": answer["gets"]["pid"] != answer["b"]["pid"],
        "used again": len(set(pids)) < len(pids),
        "fallback": fallback,
        "after a registry": back["pid"] in warm,
        "changed": changed,
        "refused": None if refused is None else refused.type,
        "crew": len(crew),
    }


if __name__ == "__main__":
    print(json.dumps(main()))
