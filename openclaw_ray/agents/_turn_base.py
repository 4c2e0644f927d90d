"""What `Turn` and `SyncTurn` have in common: all that need not wait, and the steps between two waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from openclaw_ray.agents._asking import accepted, run_timeout, spawn_request
from openclaw_ray.agents._joining import Joining, Until
from openclaw_ray.agents._mapping import TurnMap
from openclaw_ray.agents._waits import Wait, Watch, nothing
from openclaw_ray.agents.session_view import SessionView, TurnEvent, session_view, turn_events
from openclaw_ray.agents.state import load_state
from openclaw_ray.agents.text import bounded, clean
from openclaw_ray.core.errors import Cancelled, CannotWait, NothingPending, TurnYielded
from openclaw_ray.core.lifecycle import RunKind
from openclaw_ray.core.mapping import MapWindow, OnError
from openclaw_ray.core.protocol.batch import ACKNOWLEDGMENT_LIMIT, MESSAGE
from openclaw_ray.core.protocol.messages import Row, Spec
from openclaw_ray.core.results import Completion, Receipt, Usage

if TYPE_CHECKING:
    from openclaw_ray.agents.port import SpawnRequest, TurnPort
    from openclaw_ray.agents.tools.tool import Caller, Tool
    from openclaw_ray.core.message import MessageSource
    from openclaw_ray.core.policy import Sender, ToolView
    from openclaw_ray.core.prompts import Prompt
    from openclaw_ray.core.sent import Sent
    from openclaw_ray.core.subagent_rows import ChildFacts

__all__ = ["DEFAULT_WIDTH", "TurnBase"]

DEFAULT_WIDTH = 8
"""Runs at once of a turn's map if no width is given; the children cap may make them fewer."""
_PROGRESS_LIMIT = 1_000  # characters
_ROLES = ("user", "assistant", "tool", "system")


class TurnBase:
    """One turn of a session, as its agent sees it (DESIGN.md 7).

    Attributes:
        kind: what the turn was started for.
        text: newest message: the task, the operator's message, the note of a wake.
        input: the Python object given with the task, or `None`.
        events: all that the turn was started with, oldest first.
        completions: ends of children that this turn is told of, in order of birth; they count as given to it.
        source: where the message that it was started by came from, if another session said it; with the number of the
            turn of a ping-pong, how many there can be, and the prompt for a model. `None` for a user's.
        sender: who wrote ``text``, if the program that brought it in has told: ``rt.ask(…, sender=…)``.
        session: the session it belongs to.
        state: a dict of JSON, at most 64 KB, kept from turn to turn. It is committed when the turn returns or
            yields, not when it fails.
        run_id: the run.
        index: position of the item if the run belongs to a map, else `None`.
    """

    def __init__(
        self,
        spec: Spec,
        port: TurnPort,
        *,
        input: Any = None,
        completions: Iterable[Completion] = (),
        on_cancel: Callable[[str], None] = nothing,
        catalog: Callable[[], Mapping[str, Tool]] | None = None,
        attachments: Sequence[str] = (),
    ) -> None:
        self.kind = RunKind(spec.kind)
        self.text: str = spec.text
        self.input: Any = input
        self.completions: tuple[Completion, ...] = tuple(completions)
        self.events: tuple[TurnEvent, ...] = turn_events(
            self.kind, self.text, self.completions, spec.source, spec.news, spec.told
        )
        self.source: MessageSource | None = self.events[-1].source if spec.told else spec.source
        self.sender: Sender | None = spec.sender
        self.session: SessionView = session_view(spec, tuple(attachments))
        self.state: dict[str, Any] = load_state(spec.state)
        self.run_id: str = spec.run
        self.index: int | None = spec.index
        self._port = port
        self._keeps_transcript = spec.transcripts == "all"
        self._spec = spec
        self._watch = Watch(port)
        self._reason: str | None = None
        self._tool_view: ToolView | None = None
        self._on_cancel = on_cancel
        self._catalog_of = catalog
        self._tools: Mapping[str, Tool] | None = None
        self._held: dict[str, Any] = {}
        self._at_end: list[Callable[[], None]] = []
        self._dismissed: set[str] = set()
        self._unheard: set[str] = set()
        self._births = {done.run_id: number for number, done in enumerate(self.completions)}
        port.on_cancel(self._cancel)

    # ------------------------------------------------------------------ for agents

    def yield_(self, message: str | None = None, *, wait_for: str | None = None, acknowledgment: str = "") -> None:
        """End the turn here and be called again, once, when the children of this turn have settled (PROTOCOL.md 5.4).

        Code after it does not run.

        Args:
            message: text handed up if this turns out to be the run's last turn.
            wait_for: ``message``: be called again with the next message to this session, too, whichever comes first; it
                needs no children then (SPEC.md B3). Sub-agents alone may: a top-level session gets its messages as runs
                of their own.
            acknowledgment: a word for whoever watches, in the event of this yield.

        Raises:
            TurnYielded: always, unless there is nothing to wait for.
            NothingPending: no child is unsettled or unconsumed; the turn goes on.
            CannotWait: this session may not wait for a message; the turn goes on.
            ValueError: ``wait_for`` is another word.
        """
        if wait_for not in (None, MESSAGE):
            raise ValueError(f"wait_for is {MESSAGE!r} or left out, not {wait_for!r}")
        if wait_for and self.session.depth == 0:
            raise CannotWait(self.session.key)
        if not wait_for and not self._children():
            raise NothingPending("turn.yield_()")
        raise TurnYielded(message, wait_for or "", bounded(acknowledgment, ACKNOWLEDGMENT_LIMIT))

    def check(self) -> None:
        """A safe point: the turn ends here if a stop or deadline has reached it.

        Raises:
            Cancelled: with the reason, ``stopped`` or ``timeout``.
        """
        reason = self._cancelled
        if reason is not None:
            raise Cancelled(reason)

    def progress(self, text: str | None = None, done: float | None = None, total: float | None = None) -> None:
        """Say how far the turn is; coalesced. The last one stands in a timeout's completion, marked partial.

        Args:
            text: up to 1,000 characters.
            done, total: counts of anything.
        """
        self._port.progress(None if text is None else bounded(str(text), _PROGRESS_LIMIT), done, total)

    def add_usage(
        self, input_tokens: int | None = None, output_tokens: int | None = None, cost: float | None = None
    ) -> None:
        """Add to the usage of the run; summed per subtree. What is not given stays unknown, it is not zero.

        Args:
            input_tokens, output_tokens: counts.
            cost: in the currency of the configured prices.
        """
        self._port.add_usage(Usage(input_tokens, output_tokens, cost))

    def append(self, role: str, text: str) -> None:
        """Add a row to the session's transcript.

        Args:
            role: ``user``, ``assistant``, ``tool`` or ``system``.

        Raises:
            ValueError: another role.
        """
        if role not in _ROLES:
            raise ValueError(f"a row's role is one of {', '.join(_ROLES)}, not {role!r}")
        self._port.append(role, clean(text))

    # ------------------------------------------------------------------ for the runner

    @property
    def _cancelled(self) -> str | None:
        return self._reason or self._port.cancelled

    def _cancel(self, reason: str) -> None:
        """The turn is to end; from any thread, any number of times."""
        if self._reason is None:
            self._reason = reason
        self._watch.wake()
        self._on_cancel(reason)

    def _end(self) -> None:
        """The agent has returned or raised: what its tools still have at work is ended, the newest first."""
        while self._at_end:
            self._at_end.pop()()

    # ------------------------------------------------------------------ steps between waits

    def _caller(self) -> Caller:
        """This turn as tools see it."""
        from openclaw_ray.agents.tools.tool import Caller  # a turn that calls no tool does not pay for it

        return Caller(
            self.session,
            self._keeps_transcript,
            self._port,
            self._children,
            self._unheard.add,
            self,
            self._spec.attachments,
            self._spec.bindings,
        )

    def _spawn_request(self, task: str, **asked: Any) -> SpawnRequest:
        """What a program asks for; see `spawn_request`."""
        return spawn_request(
            task,
            caller=self.session.agent_id,
            transcript=self._keeps_transcript,
            attachments=self._spec.attachments,
            bindings=self._spec.bindings,
            **asked,
        )

    def _prompt_of(self, children: Sequence[ChildFacts], tools: Iterable[str]) -> Prompt:
        """The prompt of this session as it is now."""
        from openclaw_ray.agents._prompting import prompt_of

        awaiting = [(c.session_key, self._port.completion(c.run_id)) for c in self._port.children()]
        ended = [(key, end.result().text) for key, end in awaiting if end.done() and end.exception() is None]
        return prompt_of(self._spec, self.session, children, ended, tuple(tools))

    def _catalog(self) -> Mapping[str, Tool]:
        """The tools that there are for it; looked up when the first one is asked for."""
        if self._tools is None:
            self._tools = _built_in() if self._catalog_of is None else self._catalog_of()
        return self._tools

    def _sent(self, sent: Sent | Receipt) -> Sent:
        if isinstance(sent, Receipt):
            accepted(sent)
            raise AssertionError("a receipt that is accepted is no refusal")
        return sent
    def _admitted(self, request: SpawnRequest, receipt: Receipt) -> Receipt:
        accepted(receipt)
        if not request.expects:
            self._unheard.add(receipt.run_id)
        return receipt

    def _children(self) -> list[Receipt]:
        """Children whose ends no program has been given; not those dismissed, or spawned to be unheard of."""
        left_out = self._dismissed | self._unheard
        return [child for child in self._port.children() if child.run_id not in left_out]

    def _start_join(self, receipts: Receipt | Iterable[Receipt] | None, until: Until | str) -> Joining:
        children = self._children()
        for child in children:
            self._births.setdefault(child.run_id, len(self._births))
        if receipts is not None:
            named = [receipts] if isinstance(receipts, Receipt) else list(receipts)
            children = sorted(
                _joinable(named, self._unheard), key=lambda child: self._births.get(child.run_id, len(self._births))
            )
        return Joining(self._port, children, Until(until))

    def _end_join(self, joining: Joining) -> list[Completion]:
        completions = joining.take()
        self._dismiss(joining.pending)
        return completions

    def _start_map(
        self,
        wait: Wait,
        agent_id: str,
        items: Iterable[Any],
        width: int | None,
        timeout: float | None,
        retries: int,
        on_error: OnError | str,
    ) -> TurnMap:
        window = MapWindow(
            items,
            DEFAULT_WIDTH if width is None else width,
            retries=retries,
            ordered=False,  # a list is given back: nothing is gained by holding results until their turn
            on_error=on_error,
        )
        return TurnMap(
            self._port,
            window,
            agent_id,
            run_timeout(timeout, "timeout"),
            wait=wait,
            elsewhere=self._follow_unsettled,
            dismiss=self._dismiss,
        )

    def _follow_unsettled(self) -> Sequence[str]:
        runs = [child.run_id for child in self._port.children()]
        unsettled = [run_id for run_id in runs if not self._port.completion(run_id).done()]
        for run_id in unsettled:
            self._watch.follow(run_id)
        return unsettled

    def _dismiss(self, run_ids: Sequence[str]) -> None:
        """Stop these children; their ends count as consumed when they come, and nobody is told of them."""
        if not run_ids:
            return
        self._dismissed.update(run_ids)
        self._port.stop(run_ids)
        for run_id in run_ids:
            self._port.completion(run_id).add_done_callback(partial(self._discard, run_id))

    def _discard(self, run_id: str, _: object) -> None:
        self._port.consume([run_id])


def plain_rows(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Transcript rows as `turn.history` gives them: dicts of role, text and at (seconds since the epoch)."""
    return [{"role": row.role, "text": row.text, "at": row.at} for row in rows]


def _joinable(receipts: list[Receipt], unheard: set[str]) -> list[Receipt]:
    chosen: dict[str, Receipt] = {}
    for receipt in receipts:
        if not isinstance(receipt, Receipt):
            raise TypeError(f"join takes receipts of turn.spawn, not {type(receipt).__name__}")
        if not receipt.accepted:
            raise ValueError(f"there is nothing to join: the spawn was answered {receipt.status!r}: {receipt.error}")
        if receipt.run_id in unheard:
            raise ValueError(
                f"{receipt.session_key} was spawned with expects_completion_message=False: join would hang"
            )
        chosen[receipt.run_id] = receipt
    return list(chosen.values())


def _built_in() -> Mapping[str, Tool]:
    from openclaw_ray.agents.tools.catalog import TOOLS

    return TOOLS
