"""Clients: drivers, host tasks and actors, each with a root of its own (PROTOCOL.md 2.5; DESIGN.md 5, 7).

1. `Join` makes the client's root: a session at depth 0 that takes no turns, owned by a run that never ends by itself.
2. `Bye`, or silence for the lease with ``on_client_lost="stop"``, stops what is un-ended under the root; nobody is left
   to hear, so completions are discarded.
"""

from __future__ import annotations

from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.protocol.crew import Crew
from openclaw_ray.core.protocol.down import Down
from openclaw_ray.core.protocol.messages import Bye, Join
from openclaw_ray.core.protocol.records import Client, Run, Session
from openclaw_ray.core.protocol.resuming import Resuming
from openclaw_ray.core.protocol.state import State
from openclaw_ray.core.protocol.stopping import Stopping

__all__ = ["Clients"]


class Clients:
    """Clients joining and leaving."""

    def __init__(self, state: State, down: Down, stopping: Stopping) -> None:
        self.s = state
        self.down = down
        self.stopping = stopping

    def join(self, event: Join) -> None:
        """Make the client's root (1); a second time changes nothing."""
        s = self.s
        client = s.clients.setdefault(event.client, Client(event.client))
        self.down.open(event.client, event.client)
        if client.root:
            return
        client.root = event.root
        client.leased, client.on_lost = event.leased, event.on_lost
        client.host, client.pid = event.host, event.pid
        root = Session(
            event.root, event.client, event.agent_id, 0, "", event.root, "main", s.clock.wall(), client=event.client
        )
        run = Run(
            f"root-{event.client}",
            s.next_seq(),
            root.key,
            root.session_id,
            event.agent_id,
            "driver",
            "",
            "",
            root.key,
            0,
            0,
            "",
            s.clock.wall(),
            "",
            0,
            ("", "", "", ()),
            state=RunState.RUNNING,
            client=event.client,
        )
        root.run = run.id
        s.sessions[root.key] = root
        s.runs[run.id] = run
        s.touch(root)
        s.touch(run)
        s.touch(client)
        s.event("session", session_key=root.key, state="joined", root_key=root.key, pid=event.pid)

    def has_left(self, event: Join) -> bool:
        """Whether a client that is not known was here before: its root is journaled."""
        return self.s.journal.get("sessions", event.root) is not None

    def bye(self, event: Bye) -> None:
        """The client leaves in order (2)."""
        self._leave(event.client, "stopped")

    def silent(self, client_id: str) -> None:
        """Its lease has run out (2)."""
        s = self.s
        client = s.clients.get(client_id)
        if client is None or client.gone or not client.leased or not client.root:
            return
        if client.on_lost == "stop":
            self._leave(client_id, "client_gone")
        else:
            s.release_claims(client=client_id)  # a later try of its maps waits for what runs on, not for it

    def _leave(self, client_id: str, reason: str) -> None:
        s = self.s
        client = s.clients.get(client_id)
        if client is None or client.gone:
            return
        client.gone = True
        if s.exchanges:
            self.stopping.ending.birth.talks.left(client_id)
        self.stopping.ending.birth.threads.left(client)
        self.down.close(client_id)
        root = s.sessions.get(client.root)
        run = s.runs.get(root.run) if root is not None else None
        if root is not None and run is not None:
            for child in [s.runs[c] for c in root.pending if c in s.runs]:
                self.stopping.ending.route(child)
            self.stopping.mark(client_id, f"leave-{client_id}", root.key, [run], reason)
            self._end_root(run, root)
        s.forget_client(client_id)

    def _end_root(self, run: Run, root: Session) -> None:
        """The root itself is over; its records stay until nothing lives below it."""
        run.state = RunState.SUCCEEDED
        run.ended = self.s.clock.wall()
        root.run = ""
        root.state = "ended"
        self.s.touch(run)
        self.s.touch(root)
        self.stopping.ending.retire_if_done(run)

    # ------------------------------------------------------------------ boots

    def open_boot(self, boot: str, crew: Crew, resuming: Resuming, recover: bool) -> None:
        """A new start of the runtime: actors and clients of before are gone with the machine or Ray they lived on.

        Runs under a client's root end ``cancelled``, "client gone"; others are held if the start is to ``recover``,
        else they are lost. No run is executed twice by itself (DESIGN.md 10).
        """
        s = self.s
        if s.journal.get("meta", "boot") == boot.encode():
            return
        if recover:
            resuming.hold()
        # the clients first: what died with their root was stopped with it, and did not fail
        for client_id in [c.id for c in s.clients.values() if c.root]:
            self._leave(client_id, "client_gone")
        for actor_id in list(s.actors):
            crew.died(actor_id, "the runtime was started anew")
        for run in s.runs.values():
            if run.held_by == "pool":  # the pool of before has gone, and with it what it held
                run.held_by = ""
                s.touch(run)
        if not recover:
            resuming.end_the_rest()
        for claim in list(s.claims.values()):
            s.release_claims(claim=claim.claim)
        s.agents.clear()
        for bundle, _ in s.journal.live("bundles"):
            s.drop("bundles", bundle)
        s.note("boot", boot.encode())
