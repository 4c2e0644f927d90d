"""What a turn needs of the process that runs it: the seam between agents' code and the courier.

A session actor, and later the local runtime of ``openclaw_ray.testing``, provide one. Every method is safe from any
thread and returns at once; what takes time is a `concurrent.futures.Future`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from openclaw_ray.core.results import Completion, Receipt, Result, StopReport, Usage

if TYPE_CHECKING:
    from openclaw_ray.core.attachments import AttachedFile
    from openclaw_ray.core.auth import AuthAsk, AuthOutcome
    from openclaw_ray.core.message import SendAsk
    from openclaw_ray.core.named_map import MapItem
    from openclaw_ray.core.policy.rules import Sender
    from openclaw_ray.core.protocol.batch import Told
    from openclaw_ray.core.protocol.messages import Permit, Row
    from openclaw_ray.core.sent import Sent
    from openclaw_ray.core.session_asks import SessionAnswer
    from openclaw_ray.core.session_facts import ChildAsk
    from openclaw_ray.core.transcript_pages import TranscriptPage

__all__ = ["Child", "SpawnRequest", "ToolTask", "TurnPort"]


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """One spawn, as asked for by a program; ``input`` is any Python object or reference (`MISSING` if not given).

    ``item``: what it is to a map that has a name. ``cleanup``: ``delete`` has it archived once its end was heard of.
    ``ask``: what is asked for beyond that. ``send``: of a message (route ``send``), to whom and how. ``files``: copies
    of what goes along; ``mount_path``: where they are meant to appear. ``sender``: who wrote the operator's message.
    """

    task: str
    agent_id: str | None = None
    input: Any = None
    has_input: bool = False
    label: str | None = None
    timeout: float | None = None
    expects: bool = True
    route: str = "spawn"
    index: int | None = None
    task_name: str | None = None
    item: MapItem | None = None
    cleanup: str = "keep"
    ask: ChildAsk | None = None
    send: SendAsk | None = None
    files: tuple[AttachedFile, ...] = ()
    mount_path: str | None = None
    sender: Sender | None = None

    @property
    def binds(self) -> bool:
        """A conversation is asked for."""
        return self.ask is not None and self.ask.thread

    @property
    def forks(self) -> bool:
        """A branch of the requester's transcript is asked for."""
        return self.ask is not None and self.ask.context == "fork"


@dataclass(frozen=True, slots=True)
class ToolTask:
    """A call of a function that is to run as a Ray task: ``function(**values)``, awaited if it ``waits``.

    ``options`` are the task's: CPUs, GPUs, other resources.
    """

    tool: str
    function: Callable[..., Any]
    values: Mapping[str, Any]
    waits: bool
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Child:
    """A child of the running turn: its receipt, and the future of its completion."""

    receipt: Receipt
    completion: Future[Completion]


class TurnPort(Protocol):
    """One running turn's way to the rest of the runtime."""

    def spawn(self, requests: Sequence[SpawnRequest]) -> list[Future[Receipt]]:
        """Ask for children; each future gives a receipt, accepted or not. Never raises for a refusal."""

    def completion(self, run_id: str) -> Future[Completion]:
        """The future of an accepted child's completion; the same one for each call.

        For a map item the completion's ``result`` is the value of interest. A large value has been taken already.
        """

    def reply(self, send: str) -> Future[Sent]:
        """What becomes of an accepted message that the program waits for; ``send`` is its run id."""

    def leave_send(self, send: str) -> bool:
        """The program waits for it no more; True if the reply is there, and counts as heard."""

    def steered(self) -> Future[None]:
        """Done as soon as there is a message that the turn may take (`core.protocol.steered`)."""

    def take_steered(self) -> list[Future[Told | None]]:
        """Ask for those messages that are there; each future gives it, or `None` if it was handled otherwise."""

    def children(self) -> list[Receipt]:
        """Receipts of the session's children whose completions no program has been given yet, in order of birth.

        Children of earlier turns are among them.
        """

    def consume(self, run_ids: Sequence[str]) -> None:
        """These completions were given to the program (PROTOCOL.md 4.5)."""

    def pause(self) -> None:
        """The turn begins to wait for children: its slot is given back. Counts; each needs one `resume`."""

    def resume(self) -> Future[None]:
        """The wait is over; done when the turn has a slot again."""

    def stop(self, run_ids: Sequence[str]) -> list[Future[StopReport]]:
        """Stop these children's subtrees."""

    def steer(self, run_id: str, message: str) -> Future[Receipt]:
        """Interrupt a run below this session and have it go on with ``message`` (SPEC.md G4); never raises for a
        refusal."""

    def map_done(self, summary: str) -> None:
        """A map of this turn has ended: one summary row."""

    def progress(self, text: str | None, done: float | None, total: float | None) -> None:
        """Newest progress, coalesced."""

    def add_usage(self, usage: Usage) -> None:
        """Add to the run's usage."""

    def blocked(self, tool: str, rule: str) -> None:
        """A tool was called that a rule denies to this session; for figures."""

    def history(self, limit: int, offset: int) -> Future[list[Row]]:
        """The session's transcript rows, newest last, those of this turn so far included."""

    def transcript_bytes(self) -> Future[int]:
        """About how many bytes the session's transcript has by now."""

    def append(self, role: str, text: str) -> None:
        """Add a row to the transcript."""

    def limit(self, name: str, cost: float) -> tuple[str, Future[Permit]]:
        """Get in line for a rate limit; gives the request's id, and the future of the registry's word."""

    def limit_done(self, ask: str) -> None:
        """Give back what a request holds, or want nothing any more."""

    def limit_back_off(self, name: str, seconds: float) -> None:
        """Have nobody let in by a rate limit for so long."""

    def look(self, what: str, limit: int = 100, target: str = "") -> Future[list[Any]]:
        """What the registry knows of this session: ``children`` (`ChildFacts`, newest first), ``agents`` (one
        `AllowedAgents`), ``tools`` (one `ToolView`), ``audience`` (one `Audience` or `Denial`), or ``kin`` (what the
        session or run ``target`` is to it: one `KinFacts`, or none)."""

    def asked(self, what: str, given: Mapping[str, Any]) -> Future[SessionAnswer]:
        """What the registry tells this turn of sessions, or why not: ``list``, ``session``, ``may``; see
        `core.protocol.session_views`."""

    def patch(self, key: str, label: str, session_id: str | None, revision: int | None) -> Future[SessionAnswer]:
        """Change a session's label; see `core.protocol.patching`."""

    def clear(self, what: str, key: str, session_id: str, revision: int) -> Future[str]:
        """``reset`` or ``delete`` a session that was stopped; a word of `CleanupWord`."""

    def stop_session(self, key: str) -> Future[StopReport]:
        """Stop a session, with what waits in its queue and all below it."""

    def transcript(
        self, session: Mapping[str, Any], limit: int, offset: int = 0, anchor: str = ""
    ) -> Future[TranscriptPage]:
        """A page of the transcript of a session that the registry has told of."""

    def task(self, task: ToolTask) -> Future[Any]:
        """Run a tool's function as a Ray task, where there is a Ray, else in a thread. Cancelling the future ends it.

        It gives what the function returns or raises.
        """

    def auth(self, request: AuthAsk | AuthOutcome) -> Future[Any]:
        """A credential (a `Credential`), or a word on how one has done (`None`); see `openclaw_ray.core.auth`.

        Raises, by its future:
            NoCredential, CredentialStoreError: there is none for this session.
        """

    @property
    def cancelled(self) -> str | None:
        """Why the turn is to end (``stopped``, ``timeout``), or `None`."""

    def on_cancel(self, callback: Callable[[str], None]) -> None:
        """Call back, from any thread, once the turn is to end; at once if it already is."""


# a turn's map gives results; named here so that both kinds of turn share the type
MapResults = list[Result[Any]]
