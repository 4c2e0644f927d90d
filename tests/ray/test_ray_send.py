"""Messages to sessions: replies, waits that run out, and an inbox that is full.

The long form sends 10,000 messages from 50 senders at a bound of 100, and has 1,200 clients wait on one runtime; both
print their figures: ``OPENCLAW_RAY_LONG=1 pytest -n 0 -s tests/ray/test_ray_send.py``.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually

pytestmark = [pytest.mark.ray, pytest.mark.timeout(600 if os.environ.get("OPENCLAW_RAY_LONG") == "1" else 120)]

LONG = os.environ.get("OPENCLAW_RAY_LONG") == "1"
SENDERS, MESSAGES, BOUND = (50, 10_000, 100) if LONG else (10, 300, 10)


@oc.agent(id="clerk", spawns=False)
def clerk(turn: oc.SyncTurn) -> str | None:
    """``PATH WORD``: writes the word down and says it; ``silent`` says nothing, ``raise`` fails, ``wait`` waits for a
    file."""
    path, word = turn.text.split()
    if word == "wait":
        while not Path(f"{path}.go").exists():
            turn.check()
            time.sleep(0.01)
    if word == "raise":
        raise ValueError("the clerk is out")
    with Path(path).open("a") as file:
        file.write(f"{word}\n")
    return None if word == "silent" else word


@oc.agent(id="sleeper", spawns=False)
async def sleeper(turn: oc.Turn) -> str:
    await asyncio.sleep(600)
    return "slept"


@pytest.fixture(scope="module")
def own(shared: oc.Runtime) -> Iterator[oc.Runtime]:
    config = {"ray": {"inbox": {"max": BOUND}, "pool": {"prewarm": 2, "max": 6}}}
    with oc.Runtime.start(agents=[clerk, sleeper], config=config) as rt:
        yield rt


def test_a_reply_comes_back_and_so_does_its_absence(own: oc.Runtime, tmp_path: Path) -> None:
    log = tmp_path / "log"
    sent = own.send("clerk", f"{log} hello")
    assert (sent.status, sent.reply, sent.session_key) == ("ok", "hello", "agent:clerk:main")
    assert own.send("agent:clerk:main", f"{log} silent").status == "no_reply"
    failed = own.send("clerk", f"{log} raise")
    assert (failed.status, failed.error) == ("error", "the clerk is out")
    assert set(failed.to_json()) == {"status", "runId", "sessionKey", "error", "turns", "ended"}
    with pytest.raises(oc.SpawnError, match="no agent or session"):
        own.send("nobody", "x")


def test_a_wait_that_runs_out_loses_nothing(own: oc.Runtime, tmp_path: Path) -> None:
    log = tmp_path / "log"
    sent = own.send("clerk", f"{log} wait", timeout_seconds=0.1)
    later = own.send("clerk", f"{log} second", timeout_seconds=0)
    assert {sent.status, later.status} == {oc.SendStatus.ACCEPTED}
    assert later.to_json()["delivery"] == {"status": "pending", "mode": "announce"}
    Path(f"{log}.go").touch()
    assert own.result(sent.receipt, timeout=20).text == "wait"
    assert own.result(later.receipt, timeout=20).text == "second"
    assert log.read_text() == "wait\nsecond\n"


def test_awaited(own: oc.Runtime, tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def both() -> list[oc.Sent]:
        async with oc.AsyncRuntime.connect(own.name) as rt:
            first = await rt.send("clerk", f"{log} wait", timeout_seconds=0.1)
            Path(f"{log}.go").touch()
            return [first, await rt.send("clerk", f"{log} then")]

    assert [sent.status for sent in asyncio.run(both())] == ["accepted", "ok"]


def test_a_full_inbox_refuses_and_what_it_took_is_handled_once_in_order(own: oc.Runtime, tmp_path: Path) -> None:
    log = tmp_path / "log"
    blocked = own.send("clerk", f"{log} wait", timeout_seconds=0)  # the inbox fills while this one is at work
    refused: Counter[tuple[str | None, int | None]] = Counter()
    accepted: list[list[str]] = [[] for _ in range(SENDERS)]

    def sender(number: int) -> None:
        for message in range(MESSAGES // SENDERS):
            word = f"{number}.{message}"
            while True:
                try:
                    own.send("clerk", f"{log} {word}", timeout_seconds=0)
                except oc.InboxFull as full:
                    refused[full.receipt.path, full.receipt.value] += 1
                    Path(f"{log}.go").touch()
                    time.sleep(min(full.retry_after, 0.2))
                else:
                    accepted[number].append(word)
                    break

    began = time.monotonic()
    with ThreadPoolExecutor(SENDERS) as threads:
        list(threads.map(sender, range(SENDERS)))
    Path(f"{log}.go").touch()

    def all_done() -> None:
        assert not own.runs(agent="clerk", state=["queued", "running"])

    eventually(all_done, 300)
    took = time.monotonic() - began
    assert own.result(blocked.receipt, timeout=20).text == "wait"
    first, *words = log.read_text().split()
    assert first == "wait"
    assert len(words) == MESSAGES
    for number in range(SENDERS):
        assert [word for word in words if word.split(".")[0] == str(number)] == accepted[number]
    assert set(refused) == {("ray.inbox.max", BOUND)}
    figures = {"messages": MESSAGES, "senders": SENDERS, "bound": BOUND, "refused": refused.total()}
    print(json.dumps({**figures, "perSecond": round(MESSAGES / took), "peakMb": own.stats().peak_memory_bytes >> 20}))


@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="OPENCLAW_RAY_LONG=1")
def test_twelve_hundred_waiters_do_not_hold_up_what_is_asked(own: oc.Runtime) -> None:
    """1,200 coroutines of three clients wait for one session's end; beside them, stop, status and spawn are timed."""
    receipt = own.spawn("long", "sleeper")
    waiting = threading.Semaphore(0)

    def client() -> None:
        async def wait() -> None:
            async with oc.AsyncRuntime.connect(own.name) as rt:

                async def one() -> Any:
                    waiting.release()
                    return await rt.result(receipt)

                await asyncio.gather(*(one() for _ in range(400)))

        asyncio.run(wait())

    threads = [threading.Thread(target=client) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(1_200):
        waiting.acquire()
    times: dict[str, list[float]] = {"spawn": [], "status": [], "stop": []}

    def timed(name: str, call: Any) -> Any:
        began = time.perf_counter()
        out = call()
        times[name].append(1000 * (time.perf_counter() - began))
        return out

    for _ in range(100):
        child = timed("spawn", lambda: own.spawn("short", "sleeper"))
        eventually(lambda r=child: own.runs(session=r.session_key)[0]["state"] == "running", 20)  # type: ignore[misc]
        timed("status", lambda r=child: own.session(r.session_key))
        timed("stop", lambda r=child: own.stop(r.session_key, timeout=20))
    own.stop(receipt.session_key, timeout=20)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    figures = {name: {"p50": sorted(all_)[50], "p99": sorted(all_)[98]} for name, all_ in times.items()}
    print(json.dumps({name: {k: round(v, 1) for k, v in each.items()} for name, each in figures.items()}))
    assert max(each["p99"] for each in figures.values()) < 100


def test_a_reply_that_nobody_waits_for_any_more_is_kept_on_disk_alone(own: oc.Runtime, tmp_path: Path) -> None:
    log = tmp_path / "log"
    sent = own.send("clerk", f"{log} wait", timeout_seconds=0.1)
    Path(f"{log}.go").touch()

    def nothing_kept() -> None:
        assert own._client.requester.expected(sent.run_id) is None

    eventually(nothing_kept, 20)
    assert own.result(sent.receipt, timeout=20).text == "wait"
