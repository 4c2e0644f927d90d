"""The hub: appends transcript rows in batches, serves history, and fans downlinks and events out by bounded long polls
(PROTOCOL.md 2.5, 7.4). It may park calls; it is never on the path of a step.

1. The registry has one push in flight; its answer says which rows are on disk and which incarnation of the hub this is.
   A new hub says that it is one: all that is unacknowledged comes again.
2. A poll lasts at most the time that it asks for and is the client's sign of life; a new one ends the older one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import time
import uuid
from typing import Any, Literal

from openclaw_ray.actors.names import find_actor
from openclaw_ray.actors.raylet_watch import end_with_raylet
from openclaw_ray.actors.wire import pack, unpack
from openclaw_ray.core.protocol.hubstate import HubBatch, HubState
from openclaw_ray.core.protocol.messages import Archive, Branch, Row
from openclaw_ray.core.transcript_pages import TranscriptPage
from openclaw_ray.store.attachments import discard, snapshot_dir
from openclaw_ray.store.transcripts import Transcripts

__all__ = ["HubActor"]
_BRANCH_WITHIN = 10.0
"""Seconds that a first look at a branched transcript waits for it."""


class HubActor:
    """One per runtime, beside the registry."""

    def __init__(self, runtime: str, state_dir: str, sync: Literal["normal", "full"]) -> None:
        end_with_raylet()
        self.incarnation = uuid.uuid4().hex
        self.state = HubState()
        self.transcripts = Transcripts(state_dir, sync=sync)
        self._polls: dict[str, asyncio.Event] = {}
        self._watchers: set[asyncio.Event] = set()
        self._acked = 0
        with contextlib.suppress(ValueError):  # the first hub of a runtime may be there before its registry
            find_actor(runtime, "registry").hub_is_new.remote(self.incarnation)

    async def push(self, incarnation: int, packed: bytes) -> tuple[str, int]:
        """Take a batch: wake those it concerns, then write the rows; gives (own incarnation, last row written)."""
        batch: HubBatch = unpack(packed)
        pushed = self.state.push(incarnation, batch)
        for client in pushed.clients:
            parked = self._polls.get(client)
            if parked is not None:
                parked.set()
        if pushed.events:
            for watcher in self._watchers:
                watcher.set()
        if batch.rows:
            by_agent: dict[str, list[Row | Archive | Branch]] = {}
            for _, agent, row in batch.rows:
                by_agent.setdefault(agent, []).append(pickle.loads(row))
            for agent, rows in by_agent.items():
                self._write(agent, rows)
            self._acked = max(self._acked, batch.rows[-1][0])  # only now: an append may have failed
        for session_id, number in batch.begins:
            self.transcripts.begin(session_id, number)
        return self.incarnation, self._acked

    def _write(self, agent: str, rows: list[Row | Archive | Branch]) -> None:
        """Rows in their order; an `Archive` or a `Branch` among them comes after those before it.

        All of it may come again after a crash, with a hub that remembers nothing: what is archived is not begun anew.
        """
        for order in rows:
            if isinstance(order, Archive):
                self.transcripts.archived_before(agent, order.session_id, order.at)
        waiting: list[Row] = []
        for row in rows:
            if isinstance(row, Archive | Branch):
                self.transcripts.append(agent, waiting)
                waiting = []
            if isinstance(row, Archive):
                self.transcripts.archive(agent, row.session_id, at=row.at)
                if row.files:
                    discard(snapshot_dir(self.transcripts.folder, agent, row.session_id))
            elif isinstance(row, Branch):
                self.transcripts.branch(agent, row.session_id, row.source)
            else:
                waiting.append(row)
        self.transcripts.append(agent, waiting)

    async def poll(
        self, client: str, incarnation: int, cursor: int, wait: float
    ) -> tuple[int, bytes]:
        """Packed messages above ``cursor``, at once if there are any, else within ``wait`` seconds (2)."""
        older = self._polls.get(client)
        if older is not None:
            older.set()
        mine = self._polls[client] = asyncio.Event()
        self.state.touch(client, time.monotonic())
        try:
            messages = self.state.take(client, incarnation, cursor)
            if not messages:
                await _within(mine, wait)
                if self._polls.get(client) is mine:
                    messages = self.state.take(client, incarnation, cursor)
        finally:
            if self._polls.get(client) is mine:
                del self._polls[client]
            self.state.touch(client, time.monotonic())
        return self.state.incarnation, pack(messages) if messages else b""

    async def events(self, after: int, wait: float) -> tuple[bool, list[bytes]]:
        """Events above ``after`` in their journaled form; (False, []) if they are older than its memory."""
        found = self.state.events_after(after)
        if found is not None and not found:
            mine = asyncio.Event()
            self._watchers.add(mine)
            try:
                await _within(mine, wait)
            finally:
                self._watchers.discard(mine)
            found = self.state.events_after(after)
        return (False, []) if found is None else (True, list(found))

    async def history(
        self, agent_id: str, session_id: str, limit: int, offset: int, *, branched: bool = False
    ) -> list[Row]:
        """A page of a transcript, newest last; ``offset`` counts from the newest. One that begins as a branch may be
        looked at by its first turn before its order has come: that is waited for."""
        if branched:
            await self._begun(agent_id, session_id)
        return self.transcripts.read(agent_id, session_id, limit=limit, offset=offset)

    async def _begun(self, agent_id: str, session_id: str) -> None:
        """Wait until a transcript has begun, a while at most."""
        until = time.monotonic() + _BRANCH_WITHIN
        while not self.transcripts.begun(agent_id, session_id) and (left := until - time.monotonic()) > 0:
            news = asyncio.Event()  # the order comes with the event of the same step
            self._watchers.add(news)
            try:
                await _within(news, left)
            finally:
                self._watchers.discard(news)

    async def transcript(
        self, agent_id: str, session_id: str, limit: int, offset: int, anchor: str = "", *, branched: bool = False
    ) -> TranscriptPage:
        """The same with the number of all rows; around the message ``anchor`` if one is named."""
        if branched:
            await self._begun(agent_id, session_id)
        return self.transcripts.page(agent_id, session_id, limit=limit, offset=offset, anchor=anchor)

    async def transcript_bytes(self, agent_id: str, session_id: str, more: int, least: int) -> int:
        """About how many bytes a transcript has, with ``more`` that were not sent; ``least`` if others are on their
        way."""
        return max(self.transcripts.size(agent_id, session_id) + more, least)

    async def silent(self, clients: list[str], lease: float) -> list[str]:
        """Which of ``clients`` have not polled for ``lease`` seconds; one not heard of yet counts from now on."""
        now = time.monotonic()
        for client in clients:
            self.state.expect(client, now)
        return [client for client in self.state.silent(now, lease) if client in clients]

    async def ping(self) -> dict[str, int]:
        """Sign of life: its process."""
        return {"pid": os.getpid()}

    async def statistics(self) -> Any:
        """Frozen counts."""
        return self.state.statistics()


async def _within(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return


