"""What must hold of messages between sessions: seen by the turns that have them, and by those who sent them.

1. An accepted message is handled once at most: by a turn of its own, by the turn that took it (mode ``steer``), or by
   the waiting run that was told of it.
2. Messages of one sender to one session are handled in the order in which they were accepted, but for those that steer.
3. A reply comes to its program once, and what was heard as a reply and had no ping-pong after it is no news later.
   An exchange has one row of news at most.
4. An exchange has no more turns of replies than are allowed, and no turn is further than the bound of its chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from openclaw_ray.core.lifecycle import RunKind, RunState
from openclaw_ray.core.message import HOPS_MOST
from openclaw_ray.core.protocol.messages import Row, Spec
from openclaw_ray.core.sent import SendStatus, Sent

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.history import History

__all__ = ["TalkWatch"]


class TalkWatch:
    """The messages of one schedule."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.sent = 0
        self.steered = 0
        self.replies = 0
        self.turns_of_replies = 0
        self.heard_later = 0
        self._from: dict[str, tuple[str, bool]] = {}
        self._handled: dict[str, str] = {}
        self._last: dict[tuple[str, str], int] = {}
        self._replied: dict[str, str] = {}

    def accepted(self, message: str, sender: str, *, steers: bool) -> None:
        """A message was accepted, and makes a run."""
        self.sent += 1
        self._from[message] = (sender, steers)

    def turn_begins(self, spec: Spec) -> None:
        """A turn begins, with what its start carries (1-4)."""
        source = spec.source
        if source is not None:
            most = self.history.cluster.setup.limits.sessions.max_ping_pong_turns
            if source.turn > most:
                self.history.broken("turns of replies are bounded", f"{spec.run}: turn {source.turn} of {most}")
            if source.hops > HOPS_MOST:
                self.history.broken("a chain is bounded", f"{spec.run} is hop {source.hops} of {HOPS_MOST}")
            self.turns_of_replies += source.step == "reply"
        for told in spec.told:
            if spec.turn > 1 and spec.kind == RunKind.MESSAGE:
                self._handle(told.id, spec.activation, in_turn=True)
        for news in spec.news:
            self.heard_later += 1
            heard_by = self._replied.get(news.exchange)
            if heard_by is None or news.sent is None or news.sent.turns:
                continue
            run = next((v for v in self.history.runs.values() if v["activation"] == heard_by), None)
            if run is not None and run.state is RunState.SUCCEEDED:
                self.history.broken("a requester hears once", f"{news.exchange} was heard in {heard_by}, is news again")
        if spec.turn == 1 and spec.route == "send" and spec.run in self._from:
            self._handle(spec.run, spec.activation, in_turn=False)

    def taken(self, message: str, activation: str) -> None:
        """A running turn has taken a message."""
        self.steered += 1
        self._handle(message, activation, in_turn=True)

    def _handle(self, message: str, activation: str, *, in_turn: bool) -> None:
        first = self._handled.setdefault(message, activation)
        if first != activation:
            self.history.broken("a message is handled once", f"{message} was {first}'s, now {activation} has it")
        sender, steers = self._from.get(message, ("", True))
        run = self.history.runs.get(message)
        if in_turn or steers or not sender or run is None:
            return
        pair = (sender, run["session"])
        if run["seq"] < self._last.get(pair, 0):
            self.history.broken("each sender's messages in order", f"{message} of {sender} to {run['session']}")
        self._last[pair] = run["seq"]

    def replied(self, activation: str, message: str, sent: Sent) -> None:
        """A program has the reply to its message (3), unless it was told not to wait any more."""
        if sent.status is SendStatus.ACCEPTED and not sent.steered:
            return
        self.replies += 1
        other = self._replied.setdefault(message, activation)
        if other != activation:
            self.history.broken("a requester hears once", f"the reply to {message} came to {other} and {activation}")
        if sent.turns > self.history.cluster.setup.limits.sessions.max_ping_pong_turns:
            self.history.broken("turns of replies are bounded", f"{message}: {sent.turns}")

    def last_look(self, transcripts: Sequence[Sequence[Row]]) -> list[str]:
        """What is wrong in the end: news that is there twice."""
        keys = [row.key for rows in transcripts for row in rows if row.key is not None and row.key.startswith("send:")]
        return [f"{key} is {keys.count(key)} rows" for key in sorted(set(keys)) if keys.count(key) > 1]
