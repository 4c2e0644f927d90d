"""Messages between sessions on real processes: a ping-pong, ended children, and a registry that is killed in it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.ray, pytest.mark.timeout(120)]

CONFIG = {
    "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"maxPingPongTurns": 3}},
    "ray": {"pool": {"prewarm": 2, "max": 6}},
}


class Talker(oc.Agent):
    """Writes down each message of an exchange, and answers it with its number."""

    async def on_turn(self, turn: oc.Turn) -> str | None:
        source = turn.source
        if source is None:
            if turn.kind != "message":
                return None
            path, to = turn.text.split()
            sent = await turn.send(to, path, timeout_seconds=20)
            return f"{sent.status} {sent.reply}"
        path = turn.state.setdefault("path", turn.text)
        with Path(path).open("a") as file:
            file.write(f"{turn.session.agent_id} {source.step} {source.turn}\n")
        while source.turn == 2 and Path(f"{path}.hold").exists():
            turn.check()
            time.sleep(0.01)
        return f"{path}" if source.turn == 0 else f"turn {source.turn}"


class Left(Talker):
    id = "left"


class Right(Talker):
    id = "right"


@oc.agent(id="porter", spawns=False)
def porter(turn: oc.SyncTurn) -> str:
    turn.state["seen"] = [*turn.state.get("seen", []), turn.text]
    return ",".join(turn.state["seen"])


@pytest.fixture(scope="module")
def own(shared: oc.Runtime) -> Iterator[oc.Runtime]:
    with oc.Runtime.start(agents=[Left, Right, porter], config=CONFIG) as rt:
        yield rt


def lines(log: Path, count: int) -> list[str]:
    def there() -> None:
        assert len(log.read_text().splitlines()) >= count

    eventually(there, 30)
    return log.read_text().splitlines()


WHOLE = ["right message 0", "left reply 1", "right reply 2", "left reply 3", "right announce 3"]


def test_a_ping_pong_between_processes_and_a_registry_killed_in_it(own: oc.Runtime, tmp_path: Path) -> None:
    log = tmp_path / "log"
    hold = Path(f"{log}.hold")
    hold.touch()
    assert own.ask("left", f"{log} right", timeout=30).text == f"ok {log}"
    assert lines(log, 3) == WHOLE[:3]
    os.kill(own._query("info")["pid"], signal.SIGKILL)
    hold.unlink()
    assert lines(log, 5) == WHOLE

    def told() -> Any:
        rows = [row for row in own.history("agent:left:main") if "sent" in row]
        assert len(rows) == 1
        return rows[0]["sent"]

    eventually(told, 30)
    assert (told()["turns"], told()["ended"]) == (3, "limit reached")


def test_an_ended_child_in_its_next_process_remembers(own: oc.Runtime) -> None:
    receipt = own.spawn("first", "porter", label="desk")
    assert own.result(receipt, timeout=30).text == "first"
    assert own.send(receipt.session_key, "second").reply == "first,second"
    assert own.send(None, "third", label="desk").reply == "first,second,third"
    assert own.send("right", "x", requester=receipt.session_key, mode="notify").status == "queued"
    with pytest.raises(oc.SpawnError, match="no agent or session"):
        own.send("agent:nobody:main", "x", requester="left")
