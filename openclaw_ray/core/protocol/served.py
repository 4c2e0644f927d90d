"""Which client serves which channel, and whose a conversation is (`threads`, 7)."""

from __future__ import annotations

from openclaw_ray.core.protocol.messages import ChannelUp
from openclaw_ray.core.protocol.records import Client, Run
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.thread_record import Thread
from openclaw_ray.core.thread_rules import Bindings

__all__ = ["Served"]


class Served:
    """Channels and their threads, as the records have them."""

    def __init__(self, state: State) -> None:
        self.s = state

    def up(self, event: ChannelUp) -> None:
        """A client serves a channel (7)."""
        s = self.s
        client = s.clients.get(event.client)
        if client is None or not client.root:
            return
        before = self._host(event.channel, event.account)
        if before is not None and before is not client:
            before.channel = None
            s.touch(before)
        client.channel = (event.channel, event.account, event.binds)
        s.hosts[event.channel, event.account] = client.id
        s.touch(client)
        self._news_of(event.channel, event.account)

    def left(self, client: Client) -> None:
        """A client is gone: nobody serves its channel."""
        if client.channel is not None:
            channel, account, _ = client.channel
            client.channel = None
            self.s.hosts.pop((channel, account), None)
            self._news_of(channel, account)

    def _news_of(self, channel: str, account: str) -> None:
        for thread in self.s.threads.values():
            if (thread.channel, thread.account) == (channel, account):
                thread.said.clear()
                self.s.thread_news[thread.id] = None

    def _host(self, channel: str, account: str) -> Client | None:
        return self.s.clients.get(self.s.hosts.get((channel, account), ""))

    def _channel_of(self, run: Run | None) -> tuple[str, str, bool] | None:
        """The channel that a run's conversation is on, else the only, or first, one there is."""
        at = self.s.threads.get(run.post) if run is not None and run.post else None
        if at is not None and (host := self._host(at.channel, at.account)) is not None:
            return host.channel
        return next((self.s.clients[client].channel for client in self.s.hosts.values()), None)

    def bindings(self, run: Run | None) -> Bindings | None:
        """What is in force for spawns of a run; `None` where no channel can bind."""
        if not self.s.hosts:
            return None
        channel = self._channel_of(run)
        return self.s.limits.threads.of(channel[0], channel[1]) if channel is not None and channel[2] else None

    # ------------------------------------------------------------------ threads

    def _at(self, channel: str, account: str, conversation: str) -> Thread | None:
        """Whose a conversation is now."""
        where = (channel, account, conversation)
        bound = (t for t in self.s.threads.values() if t.bound)
        return next((t for t in bound if (t.channel, t.account, t.conversation) == where), None)

    def _changed(self, thread: Thread) -> None:
        self.s.touch(thread)
        self.s.thread_news[thread.id] = None

    def _drop(self, thread: Thread) -> None:
        self.s.threads.pop(thread.id, None)
        self.s.drop("threads", thread.id)

    def _event(self, thread: Thread, word: str, why: str | None) -> None:
        session = self.s.sessions.get(thread.session)
        self.s.event(
            "thread",
            session_key=thread.session,
            agent_id=thread.agent,
            requester_key=thread.requester or None,
            root_key=None if session is None else session.root,
            label=None if session is None else session.label,
            state=word,
            reason=why,
            text=thread.conversation,
        )
