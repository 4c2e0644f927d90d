"""Named maps in the registry: claims of names, and how items ended (`openclaw_ray.core.named_map`).

1. A claim is journaled with the change that makes or ends it, so that a registry that is started again knows it.
2. An admission under a claim that another try has taken over is refused.
3. The end of an item is written in the transaction that ends its run: where its run is found, not what it returned,
   which the run's own record has. Nothing of it is held in memory.
"""

from __future__ import annotations

import pickle

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.named_map import ClaimAnswer, ItemRow, page_key
from openclaw_ray.core.protocol.birth import Birth
from openclaw_ray.core.protocol.records import Claim
from openclaw_ray.core.protocol.state import State

__all__ = ["Maps"]

_AT_ONCE = 1_000


class Maps:
    """Who works on which named map, and what was done."""

    def __init__(self, state: State, birth: Birth) -> None:
        self.s = state
        self.birth = birth

    def claim(self, map_id: str, claim: str, client: str, receiver: str) -> ClaimAnswer:
        """One map of a name at a time; the same claim again has the same answer.

        Args:
            claim: the try's own id.
            client: the process that asks; ``receiver``: the downlink, of the client or turn, that it ends with.
        """
        s = self.s
        held = s.claims.get(map_id)
        if held is not None and held.claim == claim:
            return ClaimAnswer("ok", claim)
        if held is not None:
            holder = s.clients.get(held.client)
            if holder is None:
                return ClaimAnswer("busy", held.claim, held.client)
            return ClaimAnswer(
                "busy", held.claim, held.client, holder.host, holder.pid, holder.root, holder.leased, holder.seq
            )
        if receiver not in s.receivers or self._runs_on(map_id):
            return ClaimAnswer("wait")
        s.claims[map_id] = made = Claim(map_id, claim, client, receiver)
        s.touch(made)
        return ClaimAnswer("ok", claim)

    def _runs_on(self, map_id: str) -> bool:
        """Whether a run of an earlier try has not ended."""
        return any(r.item is not None and r.item.map_id == map_id and not r.terminal for r in self.s.runs.values())

    def page(self, map_id: str, page: int) -> list[ItemRow]:
        """How the items of a page of positions ended; read-only."""
        found: list[ItemRow] = []
        while True:
            rows = self.s.journal.select(
                "items", {"page": [page_key(map_id, page)]}, limit=_AT_ONCE, offset=len(found), newest_first=False
            )
            found += [self._row(*pickle.loads(data)) for data in rows]
            if len(rows) < _AT_ONCE:
                return found

    def _row(self, index: int, digest: bytes, run_id: str, state: str) -> ItemRow:
        if state != RunState.SUCCEEDED.value:
            return ItemRow(index, digest, False)
        run = self.s.journaled_run(run_id)
        if run is None or run.outcome is None or run.outcome.held:
            return ItemRow(index, digest, True)
        return ItemRow(index, digest, True, self.birth.completed(run, ""))
