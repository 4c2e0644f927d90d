"""One try at a map that has a name, in its client: the claim, and what earlier tries have done (DESIGN.md 7).

The rules are those of `openclaw_ray.core.named_map`. Ends are read from the registry a page of positions at a time, as
the items of that page are pulled; `NamedMap` holds one page, and a digest for each item that was not handed out.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from openclaw_ray.actors.payload import pickled
from openclaw_ray.actors.requester import Requester
from openclaw_ray.actors.wire import unpack
from openclaw_ray.core.errors import MapInUse
from openclaw_ray.core.lifecycle import Cause, ResultStatus
from openclaw_ray.core.named_map import PAGE, ClaimAnswer, ClaimWait, ItemRow, MapItem, item_digest
from openclaw_ray.core.protocol.messages import MapDone
from openclaw_ray.core.results import ErrorInfo, Result

__all__ = ["NamedMap"]

_SOONEST, _LATEST = 0.02, 0.5
"""Seconds between two asks for a name that is not free."""


class NamedMap:
    """See the module.

    Args:
        query: asks the registry: (method, \\*arguments).
        failed_only: run only items that an earlier try has seen fail.
    """

    def __init__(
        self, query: Callable[..., Any], requester: Requester, agent_id: str, map_id: str, *, failed_only: bool
    ) -> None:
        self._query = query
        self._requester = requester
        self._agent_id = agent_id
        self._map_id = map_id
        self._failed_only = failed_only
        self._claim = uuid.uuid4().hex
        self._begun = False
        self._page = -1
        self._rows: dict[tuple[int, bytes], ItemRow] = {}
        self._digests: dict[int, bytes] = {}

    def begin(self) -> None:
        """Claim the name, once; waits while what an earlier try has left is still running, or its client may be dead.

        Raises:
            MapInUse: another map of this name is alive.
            RuntimeClosed, RuntimeUnavailable: the runtime went away.
        """
        if self._begun:
            return
        client = self._requester.courier.core.client
        if not self._requester.enter_map(self._map_id):
            ours = ClaimAnswer("busy", host=socket.gethostname(), pid=os.getpid(), root=self._requester.key)
            raise _in_use(self._map_id, ours)
        try:
            wait = ClaimWait(client)
            pause = _SOONEST
            while True:
                answer = self._query("claim_map", self._map_id, self._claim, client, self._requester.receiver)
                word = wait.heard(answer, time.monotonic())
                if word is ClaimWait.Word.GO:
                    self._begun = True
                    return
                if word is ClaimWait.Word.REFUSE:
                    raise _in_use(self._map_id, answer)
                time.sleep(pause)
                pause = min(2 * pause, _LATEST)
        except BaseException:
            self.end(MapDone(self._requester.receiver, self._map_id, ""))  # it may have been given to us unheard
            raise

    def end(self, done: MapDone) -> None:
        """The map is over: say so, and give the name back."""
        self._requester.courier.post(replace(done, claim=self._claim))
        self._requester.leave_map(self._map_id)

    def known(self, index: int, item: Any) -> Result[Any] | None:
        """What an earlier try has made of an item, or why this one does not run it; `None` if it is to run.

        Raises:
            RuntimeClosed, RuntimeUnavailable: the runtime went away.
        """
        digest = item_digest(self._agent_id, item, lambda value: pickled(value, self._requester.modules))
        row = self._row(index, digest)
        if row is not None and row.completed is not None:
            done = self._requester.read(row.completed)
            return replace(done.result, reused=True, index=index)
        if self._failed_only and (row is None or row.ok):
            return self._left_alone(row, index)
        self._digests[index] = digest
        return None

    def _row(self, index: int, digest: bytes) -> ItemRow | None:
        page = index // PAGE
        if page != self._page:
            rows: list[ItemRow] = unpack(self._query("map_page", self._map_id, page))
            self._rows = {(row.index, row.digest): row for row in rows}
            self._page = page
        return self._rows.pop((index, digest), None) if digest else None

    def _left_alone(self, row: ItemRow | None, index: int) -> Result[Any]:
        if row is None:
            text = f"no earlier try of map {self._map_id!r} ran this item to an end; without failed_only it runs"
            error = ErrorInfo("NotTried", text, cause=Cause.NOT_TRIED.value)
            return Result(ResultStatus.CANCELLED, error=error, index=index)
        text = "it succeeded, but its value of over 64 KB was not journaled; without failed_only it is run again"
        return Result(
            ResultStatus.ERROR, error=ErrorInfo("ValueLost", text, cause=Cause.VALUE_LOST.value), index=index
        )

    def item(self, index: int) -> MapItem:
        """What the run of an item is admitted with."""
        return MapItem(self._map_id, self._claim, self._digests.get(index, b""))

    def handed(self, index: int | None) -> None:
        """An item's result has been handed out: it is not run any more."""
        if index is not None:
            self._digests.pop(index, None)


def _in_use(map_id: str, answer: ClaimAnswer) -> MapInUse:
    return MapInUse(map_id, answer.pid, answer.host, answer.root)
