"""A client's try at a map that has a name: its claim, and the ends of earlier tries, as the runtime's client does."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from openclaw_ray.core.named_map import ClaimAnswer, ClaimWait, ItemRow, MapItem, item_digest
from openclaw_ray.core.protocol.messages import MapDone
from openclaw_ray.core.results import Result
from openclaw_ray.testing.simulator.network import Lost

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.client import ClientProcess

__all__ = ["NamedTry"]

_ASK_EVERY = 0.2


class NamedTry:
    """One try. ``claimed``: the name is its own; it is not if another try is alive."""

    def __init__(self, process: ClientProcess, map_id: str) -> None:
        self.process = process
        self.map_id = map_id
        self.claim = process.world.mint("t")
        self.claimed = False
        self._rows: dict[tuple[int, bytes], ItemRow] = {}
        self._answers: list[Any] = []

    def begin(self) -> Generator[float | Any, None, None]:
        """Claim the name, and read what was done; the items of a schedule fit into one page."""
        from openclaw_ray.testing.simulator.registry import RegistryProcess

        name = self.process.name
        wait = ClaimWait(name)
        word = wait.Word.WAIT
        while word is wait.Word.WAIT:
            yield from self._ask(RegistryProcess.on_claim_map, self.map_id, self.claim, name, name)
            answer = self._answers.pop()
            if isinstance(answer, ClaimAnswer):
                word = wait.heard(answer, self.process.world.now)
            if word is wait.Word.WAIT:
                yield _ASK_EVERY
        self.claimed = word is wait.Word.GO
        while self.claimed:
            yield from self._ask(RegistryProcess.on_map_page, self.map_id, 0)
            rows = self._answers.pop()
            if not isinstance(rows, Lost):
                self._rows = {(row.index, row.digest): row for row in rows}
                return
            yield _ASK_EVERY

    def _ask(self, method: Any, *args: Any) -> Generator[Any, None, None]:
        def came(answer: Any) -> None:
            self._answers.append(answer)
            self.process.script.poke()

        self.process.cluster.network.ask(self.process, "registry", "query", came, method, *args)
        yield lambda: bool(self._answers)

    def known(self, index: int, plan: int) -> Result[Any] | None:
        """The result of an earlier try."""
        row = self._rows.get((index, _digest(plan)))
        return row.completed.completion.result if row is not None and row.completed is not None else None

    def item(self, plan: int) -> MapItem:
        """What an item's run is admitted with."""
        return MapItem(self.map_id, self.claim, _digest(plan))

    def end(self) -> None:
        """The map is over."""
        self.process.post(MapDone(self.process.name, self.map_id, "mapped", self.claim))


def _digest(plan: int) -> bytes:
    return item_digest("worker", plan, lambda _: b"")
