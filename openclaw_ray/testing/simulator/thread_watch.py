"""What must hold of conversations: as the journal has them, and as their users see them (SPEC.md B8, F5).

1. A conversation is one session's at a time. A binding that is over never comes back.
2. What a user says goes to the session whose the conversation is when it is accepted, never to one whose binding was
   over before; and it is handled once, by a turn of its own or by the waiting run that was told of it.
3. What a session answers is kept until it was said there, once. Nothing new is to be said in a conversation once its
   end is in the journal, and nothing is said there after its channel was told of that.
4. In the end nothing is owed to a channel that is still served.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from openclaw_ray.core.lifecycle import RunKind
from openclaw_ray.core.protocol.journal import Write
from openclaw_ray.core.protocol.messages import Post, Spec, Unbind
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.thread_record import Thread, ThreadState
from openclaw_ray.core.protocol.threads import answer_text
from openclaw_ray.core.results import Receipt

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.history import History

__all__ = ["ThreadWatch"]

_DONE = (ThreadState.ENDING, ThreadState.OVER)


class ThreadWatch:
    """The conversations of one schedule.

    Attributes:
        words: accepted. ``answers``: said by a channel. ``bindings``: that began. ``ends``: of them, that are over.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.words = 0
        self.answers = 0
        self.bindings = 0
        self.ends = 0
        self._threads: dict[str, dict[str, Any]] = {}
        self._over: set[str] = set()
        self._posts: dict[str, str] = {}
        self._said: set[str] = set()
        self._spoken: dict[str, str] = {}
        self._handled: dict[str, str] = {}
        self._told_end: set[tuple[str, str]] = set()

    # ------------------------------------------------------------------ the journal

    def committed(self, writes: Sequence[Write], ended: Sequence[str]) -> None:
        """A transaction is in the journal; its runs are known already, those in ``ended`` have ended with it."""
        changed = [write for write in writes if write.table == "threads"]
        before = {str(write.key): self._threads.get(str(write.key)) for write in changed}
        for write in changed:
            key = str(write.key)
            if write.data is None:
                self._threads.pop(key, None)
                continue
            now = dict(zip(Thread.FIELDS, pickle.loads(write.data), strict=True))
            self._threads[key] = now
            self._one(key, before[key], now)
        if changed:
            self._one_each()
        for write in writes:
            if write.table == "runs" and write.data is not None:
                self._spoken_to(str(write.key), before)
        for run_id in ended:
            self._answered(run_id, before)

    def _one(self, key: str, old: dict[str, Any] | None, now: dict[str, Any]) -> None:
        """A binding's record has changed (1, 3)."""
        if now["state"] is ThreadState.BOUND and (old is None or old["state"] is not ThreadState.BOUND):
            self.bindings += 1
            if key in self._over:
                self.history.broken("a binding that is over stays over", f"{key} is {now['session']}'s again")
        if now["state"] in _DONE and not key.startswith("home:"):
            self.ends += key not in self._over
            self._over.add(key)
        if old is not None and old["state"] in _DONE:
            new = {run for run, _ in now["posts"]} - {run for run, _ in old["posts"]}
            if new:
                self.history.broken("nothing is said after an unbinding", f"{key} is {old['state']}, then {new}")

    def _one_each(self) -> None:
        whose: dict[tuple[str, str, str], str] = {}
        for key, thread in self._threads.items():
            if thread["state"] is ThreadState.BOUND:
                where = (thread["channel"], thread["account"], thread["conversation"])
                other = whose.setdefault(where, key)
                if other != key:
                    self.history.broken("a conversation is one session's", f"{where} has {other} and {key}")

    def _spoken_to(self, run_id: str, before: dict[str, dict[str, Any] | None]) -> None:
        """A run has become a user's word (2)."""
        view = self.history.runs[run_id]
        if not view["post"] or run_id in self._posts:
            return
        key = self._posts[run_id] = view["post"]
        was, now = before.get(key, self._threads.get(key)), self._threads.get(key)
        there = was if was is not None and was["state"] is not ThreadState.BINDING else now
        if there is None or (there is was and was["state"] in _DONE) or there["session"] != view["session"]:
            detail = f"{run_id} of {view['session']} was said in {key}, which is {there}"
            self.history.broken("a word goes to whose the conversation is", detail)

    def _answered(self, run_id: str, before: dict[str, dict[str, Any] | None]) -> None:
        """A run that answers users has ended: that is to be said (3)."""
        view = self.history.runs[run_id]
        key = view["post"]
        was, now = before.get(key), self._threads.get(key)
        if not key or now is None or was is None or not answer_text(view.state, view["outcome"]):
            return
        if was["state"] is now["state"] is ThreadState.BOUND and run_id not in {run for run, _ in now["posts"]}:
            self.history.broken("an answer is said where it was asked", f"{run_id} has ended, and {key} has {now}")

    # ------------------------------------------------------------------ users and turns

    def accepted(self, run: str, receipt: Receipt) -> None:
        """A user was told that a word is on its way."""
        self.words += 1
        if not receipt.told and run not in self.history.runs:
            self.history.broken("accepted after recorded", f"{run} was accepted and is not in the journal")
        self._spoken[run] = receipt.session_key

    def turn_begins(self, spec: Spec) -> None:
        """A turn begins, with what its start carries (2)."""
        if spec.turn == 1 and spec.route == "ask":
            self._handle(spec.run, spec)
        for told in spec.told if spec.turn > 1 and spec.kind == RunKind.MESSAGE else ():
            self._handle(told.id, spec)

    def _handle(self, run: str, spec: Spec) -> None:
        first = self._handled.setdefault(run, spec.activation)
        if first != spec.activation:
            self.history.broken("a word is handled once", f"{run} was {first}'s, now {spec.activation} has it")
        if run in self._spoken and self._spoken[run] != spec.session_key:
            self.history.broken("a word goes to whose the conversation is", f"{run} is handled by {spec.session_key}")

    def said(self, client: str, post: Post) -> None:
        """A channel says what a run came to, for the first time (3)."""
        self.answers += 1
        if post.run in self._said:
            self.history.broken("an answer is said once", f"{post.run} in {post.conversation}")
        self._said.add(post.run)
        if (client, post.thread) in self._told_end:
            self.history.broken("nothing is said after an unbinding", f"{post.run} in {post.conversation}")

    def unbound(self, client: str, message: Unbind) -> None:
        """A channel was told that a binding is over."""
        if message.thread not in self._over and message.why != "spawn-failed":
            self.history.broken("an end is told after it is recorded", f"{message}")
        self._told_end.add((client, message.thread))

    # ------------------------------------------------------------------ the end

    def owed(self, s: State) -> list[str]:
        """What a channel that is served has still to do, or to be told (4)."""
        found = []
        for thread in s.threads.values():
            if (thread.channel, thread.account) not in s.hosts:
                continue
            if thread.state in (ThreadState.BINDING, ThreadState.ENDING):
                found.append(f"thread {thread.id} is {thread.state}")
            found += [f"{run} is to be said in {thread.conversation}" for run, _ in thread.posts]
        return found
