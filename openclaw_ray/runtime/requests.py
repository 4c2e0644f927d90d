"""What a client asks for, up to the future of its answer: `Runtime` waits for it in its thread, `AsyncRuntime` in its
loop."""

from __future__ import annotations

import uuid
from collections.abc import Container, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from openclaw_ray.agents._asking import spawn_request
from openclaw_ray.agents.port import SpawnRequest
from openclaw_ray.core.errors import ProtocolRefused, UnknownAgent
from openclaw_ray.core.keys import main_key, normalise_agent_id, normalise_key
from openclaw_ray.core.limits import RuntimeLimits
from openclaw_ray.core.mapping import OnError
from openclaw_ray.core.named_map import check_map_id
from openclaw_ray.core.policy import Sender
from openclaw_ray.core.protocol.state import AgentEntry
from openclaw_ray.core.results import Receipt, StopReport
from openclaw_ray.core.thread_rules import Bindings
from openclaw_ray.runtime.client import Client, TurnClient
from openclaw_ray.runtime.looking import RuntimeView
from openclaw_ray.runtime.named_map import NamedMap
from openclaw_ray.runtime.others import OthersEnds

__all__ = ["Requests"]


class Requests(RuntimeView):
    """The asking half of a runtime; nothing here waits.

    Args:
        width: of a map that does not say.
    """

    def __init__(self, client: Client | TurnClient, limits: RuntimeLimits, width: int) -> None:
        super().__init__(client.runtime, limits)
        self._client = client
        self._asker = client.asker
        self._width = width
        self._others = OthersEnds(self)

    def _spawning(
        self, task: str, agent_id: str | None, *, requester: str | None, **options: Any
    ) -> Future[Receipt]:
        """The receipt to come of one spawn; options as in `spawn_request`.

        Raises:
            InvalidItem, TaskTooLarge, TypeError, ValueError: what is asked for cannot be.
        """
        self._open()
        request = spawn_request(
            task,
            agent_id=agent_id,
            transcript=False,
            attachments=self._limits.attachments,
            bindings=Bindings(),  # whether there is a channel for it, and may be bound, is known to the registry alone
            **options,
        )
        asker = self._client.requester
        if requester is not None and normalise_key(requester) != asker.key:
            key = normalise_key(requester)
            if isinstance(self._client, TurnClient):
                raise ProtocolRefused("requester", f"{asker.key} spawns for itself alone, not for {key}")
            folder = asker.state_dir
            asker = type(asker)(self._client.courier, key, self._client.id, "", key.split(":")[1])
            asker.state_dir = folder
        return asker.spawn([request])[0]

    def _known_agent(self, agent_id: str, known: Mapping[str, AgentEntry]) -> str:
        """``agent_id`` if the runtime knows it; ``known`` is what it knows now, others' agents included.

        Raises:
            UnknownAgent: it does not; the text names those that it knows.
        """
        agent = normalise_agent_id(agent_id)
        if agent is None or agent not in known:
            raise UnknownAgent(agent_id, tuple(sorted(known)))
        self._knows(known[agent].modules)
        return agent

    def _knows(self, modules: Iterable[str]) -> None:
        """Inputs with what these modules define are pickled by value: their classes are then the agents' own."""
        asker = self._client.requester
        asker.modules = tuple(dict.fromkeys((*asker.modules, *modules)))

    def _asking(
        self, to: str, text: str, *, expects: bool = True, sender: Sender | Mapping[str, Any] | None = None
    ) -> tuple[str, Future[Receipt]]:
        """The session key that a message goes to, and the receipt to come.

        ``expects``: this client is to hear of the end; else it is kept for whoever asks.

        Raises:
            ValueError: ``sender`` does not say who it is.
        """
        wrote = None if sender is None else Sender.of(sender)
        self._open()
        agent = normalise_agent_id(to)
        key = main_key(agent) if agent is not None else normalise_key(to)
        request = SpawnRequest(text, agent_id=agent, expects=expects, route="ask", sender=wrote)
        return key, self._client.requester.spawn([request], key=key)[0]

    def _stopping(self, key: str = "", run: str = "", scope: str = "tree") -> Future[StopReport]:
        """The report to come of a stop; ``scope`` as in `StopAsk`."""
        self._open()
        return self._client.requester.stop(key=normalise_key(key) if key else "", run=run, scope=scope)

    def _clearing_stop(self, key: str) -> Future[StopReport]:
        """The stop that a reset or a deletion begins with."""
        return self._stopping(key=key)

    def _map_options(
        self,
        width: int | None,
        timeout: float | None,
        on_error: OnError | str,
        retries: int,
        transcripts: str,
        map_id: str | None,
        failed_only: bool,
        ordered: bool,
    ) -> dict[str, Any]:
        """Options of `root_steps`.

        Raises:
            ValueError: one is not as it may be.
        """
        kept: Container[str] = ("all", "failed", "none")
        if transcripts not in kept:
            raise ValueError(f"transcripts is 'all', 'failed' or 'none', not {transcripts!r}")
        if failed_only and map_id is None:
            raise ValueError("failed_only needs the map_id of an earlier try")
        return {
            "map_id": uuid.uuid4().hex if map_id is None else check_map_id(map_id),
            "width": self._width if width is None else width,
            "timeout": timeout,
            "retries": retries,
            "ordered": ordered,
            "on_error": OnError(on_error),
            "transcripts": transcripts,
        }

    def _named(self, agent: str, map_id: str | None, failed_only: bool) -> NamedMap | None:
        """What a map of a name knows of its earlier tries; `None` for one without."""
        if map_id is None:
            return None
        return NamedMap(self._query, self._client.requester, agent, check_map_id(map_id), failed_only=failed_only)
