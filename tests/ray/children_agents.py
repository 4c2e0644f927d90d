"""Agents of ``test_ray_children.py``."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import openclaw_ray as oc


@oc.agent
def parent(turn: oc.SyncTurn) -> Any:
    """Says what it is told, spawns the rest of its input, and gives what the child returned."""
    params = dict(turn.input)
    turn.append("assistant", params.pop("say", "nothing"))
    if "content" in params:
        import ray

        params["attachments"] = [{"name": "big", "content": ray.put(params.pop("content"))}]
    receipt = turn.spawn("look", **params)
    [done] = turn.join()
    done.result.raise_for_status()
    return {"receipt": receipt.to_json(), "child": done.result.value}


@oc.agent
def child(turn: oc.SyncTurn) -> Any:
    """Where it is, and what it was given."""
    if turn.session.depth == 1 and turn.input is not None:
        return parent(turn)
    files = {}
    for path in turn.session.attachments:
        data, mode = Path(path).read_bytes(), stat.S_IMODE(os.stat(path).st_mode)
        files[os.path.basename(path)] = (len(data), hashlib.sha256(data).hexdigest(), mode)
    folder = os.path.dirname(turn.session.attachments[0]) if turn.session.attachments else ""
    manifest = json.loads((Path(folder) / ".manifest.json").read_text()) if folder else None
    return {
        "cwd": os.getcwd(),
        "view": turn.session.cwd,
        "pid": os.getpid(),
        "model": turn.session.model,
        "files": files,
        "folder": folder,
        "manifest": manifest,
        "history": [row["text"] for row in turn.history(limit=50)],
    }


AGENTS = [parent, child]
