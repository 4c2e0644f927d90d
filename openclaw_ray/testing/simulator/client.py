"""A simulated client: a driver with a root of its own, a courier, and one bounded long poll on the hub."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from openclaw_ray.core.message import SendAsk
from openclaw_ray.core.protocol.messages import Bye, DownMessage, Verdict
from openclaw_ray.core.protocol.messages import Join as JoinEvent
from openclaw_ray.core.results import Receipt
from openclaw_ray.testing.simulator.chat import Chat, Word
from openclaw_ray.testing.simulator.named_try import NamedTry
from openclaw_ray.testing.simulator.network import Lost
from openclaw_ray.testing.simulator.plans import (
    Ask,
    Join,
    Map,
    Operation,
    Rebind,
    Reset,
    Send,
    Serve,
    Spawn,
    Steer,
    Stop,
    Tell,
    Work,
)
from openclaw_ray.testing.simulator.plans import Chat as Chat_
from openclaw_ray.testing.simulator.reset_try import ResetTry
from openclaw_ray.testing.simulator.script import Script, Steps
from openclaw_ray.testing.simulator.talker import Talker

if TYPE_CHECKING:
    from openclaw_ray.testing.simulator.cluster import Cluster

__all__ = ["ClientProcess", "ClientScript"]


class _GaveUp(Exception):
    """A wait took longer than the client's patience."""


class ClientProcess(Talker):
    """A driver."""

    def __init__(self, cluster: Cluster, number: int, operations: tuple[Operation, ...]) -> None:
        super().__init__(cluster, f"client-{number}")
        self.root = f"agent:worker:driver:{self.name}"
        self.chat = Chat(self)
        self.script = ClientScript(self, operations)
        self.left_at = -1.0
        self.said_bye = False
        self.post(JoinEvent(self.name, self.root, "worker", leased=cluster.setup.leased))
        self._poll()
        self.script.begin()

    @property
    def left(self) -> bool:
        """True once it is over for this client: it has left, was given up, or has died."""
        return self.left_at >= 0.0

    def leave(self) -> None:
        """It is over."""
        if not self.left:
            self.left_at = self.world.now

    # ------------------------------------------------------------------ poll

    def _poll(self) -> None:
        from openclaw_ray.testing.simulator.hub import HubProcess

        if self.alive and not self.left and not self.courier.stale:
            incarnation, cursor = self.courier.cursor(self.name)
            network = self.cluster.network
            network.ask(self, "hub", "main", self._polled, HubProcess.on_poll, self.name, incarnation, cursor)

    def _polled(self, answer: Any) -> None:
        if answer is Lost.UNAVAILABLE:
            self.after(0.2, self._poll)
            return
        incarnation, messages = answer
        for message in self.courier.down(self.name, incarnation, messages):
            self.message(self.name, message)
        if not messages:
            self.courier.look()
        self.pump()
        self._poll()

    # ------------------------------------------------------------------ from the courier

    def receipt(self, token: Any, receipt: Receipt) -> None:
        """To the family that asked."""
        asked_by, what = token
        asked_by.answered(what, receipt)

    def verdict(self, verdict: Verdict) -> None:
        """On a stop."""
        self.script.family.verdict(verdict)

    def message(self, receiver: str, message: DownMessage) -> None:
        """From the registry."""
        if not self.chat.hear(message):
            self.script.family.hear(message)

    def heard(self) -> None:
        """The script may wait for the courier to be done."""
        self.script.poke()

    def stale(self) -> None:
        """Its lease ran out: what it waits for fails, and it ends."""
        self.script.close()
        self.leave()

    def gone(self) -> None:
        """Its death: only its silence tells of it."""
        self.script.close()
        self.leave()


class ClientScript(Script):
    """What a driver does, and its leave at the end."""

    def __init__(self, process: ClientProcess, operations: tuple[Operation, ...]) -> None:
        super().__init__(process, process.root, process.name, "")
        self.process = process
        self.operations = operations
        self._late = False

    def begin(self) -> None:
        """Run."""
        patience = self.process.cluster.setup.patience
        if patience is not None:
            self.process.after(patience, self._impatient)
        self.drive(self._program())

    def _impatient(self) -> None:
        self._late = True
        self.poke()

    def _wait(self, condition: Callable[[], bool]) -> Steps:
        yield lambda: condition() or self._late
        if not condition():
            raise _GaveUp

    def _program(self) -> Steps:
        try:
            for op in self.operations:
                yield from self._do(op)
            yield from self._wait(lambda: all(child.end is not None for child in self.waiting_for()))
            self.family.hand(self.waiting_for())
        except _GaveUp:
            stop = self.family.stop(key=self.process.root)
            yield lambda: self.family.stopped(stop)
            yield lambda: all(
                child.end is not None or (child.receipt is not None and not child.accepted)
                for child in self.family.asked
            )
            self.family.hand(self.family.asked)
        self.process.said_bye = True
        self.process.post(Bye(self.process.name))
        yield lambda: self.process.courier.in_flight is None and not self.process.courier.pending

    def finished(self) -> None:
        """All done, and the registry knows."""
        self.over = True
        self.process.leave()

    def _do(self, op: Operation) -> Steps:
        match op:
            case Work(seconds):
                yield seconds
            case Spawn(plans, timeout, expects, thread):
                yield from self._patient(self.spawn(plans, timeout=timeout, expects=expects, thread=thread))
            case Map():
                self.process.world.note(f"{self.process.name} maps {len(op.plans)}")
                lane = f"map:{self.process.name}:{self.process.world.mint('m')}"
                yield from self._patient(self._named(op, lane) if op.map_id else self.map(op, lane=lane))
            case Join(until):
                children = self.waiting_for()
                need = min(len(children), 1) if until == "first" else len(children)
                yield from self._wait(lambda: sum(c.end is not None for c in children) >= need)
                self.family.hand([c for c in children if c.end is not None])
            case Stop(child, wait, key, scope):
                yield from self._stop(child, wait, key, scope)
            case Reset(agent):
                yield from ResetTry(self.process, f"agent:{agent}:main").run()
            case Steer(child, plan):
                yield from self._patient(self.steer(child, plan))
            case Tell(child, plan):
                yield from self._tell(child, plan)
            case Send():
                yield from self._send(op)
            case Ask():
                yield from self._ask(op)
            case Serve():
                self.process.chat.serve()
            case Chat_(conversation, plan):
                yield from self._word(self.process.chat.say(conversation, str(plan)))
            case Rebind():
                yield from self._rebind(op)
            case _:
                raise ValueError(f"a client does not {type(op).__name__.lower()}")

    def _named(self, op: Map, lane: str) -> Steps:
        named = NamedTry(self.process, op.map_id)
        yield from named.begin()
        if named.claimed:
            yield from self.map(op, lane=lane, named=named)
            named.end()
        else:
            self.process.world.note(f"{self.process.name} is refused map {op.map_id}")
            self.process.cluster.monitor.refused_maps += 1

    def _patient(self, steps: Steps) -> Steps:
        for wait in steps:
            if isinstance(wait, (int, float)):
                yield wait
                if self._late:
                    raise _GaveUp
            else:
                yield from self._wait(wait)

    def _stop(self, child: int, wait: bool, key: str, scope: str) -> Steps:
        if child >= len(self.spawned):
            return
        if key:
            stop = self.family.stop(key=key, scope=scope)
        elif child < 0:
            stop = self.family.stop(key=self.process.root)
        else:
            stop = self.family.stop(run=self.spawned[child].run)
        if wait:
            yield lambda: self.family.stopped(stop)

    def _tell(self, child: int, plan: int) -> Steps:
        if child >= len(self.spawned):
            return
        receipt = self.spawned[child].receipt
        assert receipt is not None
        agent = self.process.cluster.program.plans[plan].agent
        message = self.family.spawn(plan, route="ask", key=receipt.session_key, agent=agent)
        self.process.pump()
        yield from self._wait(lambda: message.receipt is not None)
        answer = message.receipt
        if answer is not None and answer.told:  # no end of its own will come
            self.family.asked.remove(message)
            del self.family.children[message.run]
        elif message.accepted:
            self.spawned.append(message)

    def _send(self, op: Send) -> Steps:
        world, until = self.process.world, self.process.world.now + op.wait
        sent = self.family.send(op.plan, SendAsk(f"agent:{op.agent}:main", wait=op.wait > 0, mode=op.mode))
        self.process.pump()
        yield from self._wait(lambda: sent.receipt is not None)
        if not self.waits_for(sent):
            return
        self.process.after(op.wait + 1e-6, self.poke)
        yield lambda: sent.reply is not None or world.now >= until or self._late
        self.family.leave(sent)

    def _word(self, word: Word) -> Steps:
        self.process.pump()
        yield from self._wait(lambda: word.receipt is not None)

    def _rebind(self, op: Rebind) -> Steps:
        chat, receipt = self.process.chat, None
        if op.child < len(self.spawned):
            receipt = self.spawned[op.child].receipt
        if op.what == "leave":
            chat.leave(op.conversation)
        elif op.what == "unfocus":
            yield from self._word(chat.say(op.conversation, "/unfocus", command=True))
        elif op.what == "idle":
            yield from self._word(chat.say(op.conversation, "/session idle 0.5s", command=True))
        elif receipt is not None and op.what == "focus":
            yield from self._word(chat.say(op.conversation, f"/focus {receipt.session_key}", command=True))
        elif receipt is not None and op.what == "unbind":
            from openclaw_ray.testing.simulator.registry import RegistryProcess

            network = self.process.cluster.network
            network.tell(self.process, "registry", "query", RegistryProcess.on_unbind, receipt.session_key)

    def _ask(self, op: Ask) -> Steps:
        world, agent = self.process.world, op.agent
        child = self.family.spawn(op.plan, route="ask", key=f"agent:{agent}:{op.name}", agent=agent)
        self.process.pump()
        until = world.now + op.patience
        self.process.after(op.patience + 1e-6, self.poke)
        yield from self._wait(lambda: child.receipt is not None)
        if child.accepted:
            self.spawned.append(child)
            yield from self._wait(lambda: child.end is not None or world.now >= until)
            if child.end is not None:
                self.family.hand([child])
