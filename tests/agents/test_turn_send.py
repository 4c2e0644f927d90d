"""`turn.send` and ``sessions_send``, over a port without a runtime (SPEC.md B2)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fake_port import FakePort
from turn_drive import Drive

from openclaw_ray.core.errors import Cancelled, InboxFull, SpawnError, SpawnForbidden, ToolInputError
from openclaw_ray.core.lifecycle import RunState
from openclaw_ray.core.message import MessageSource, News, SendAsk
from openclaw_ray.core.results import INBOX, Receipt
from openclaw_ray.core.sent import SendStatus, Sent

BOB = "agent:bob:main"
OK = Sent(SendStatus.OK, "run-1", BOB, "hello")


def accepting(port: FakePort, reply: Sent | None = OK) -> None:
    port.answer = lambda request: Receipt("accepted", "run-1", BOB, "bob")
    if reply is not None:
        port.reply("run-1").set_result(reply)


def test_a_reply_is_heard_and_the_wait_is_left_once(drive: Drive, port: FakePort) -> None:
    accepting(port)

    async def body(turn: Any) -> None:
        assert await turn.send(BOB, "hi", mode="followup") == OK
        answer = (await turn.call("sessions_send", sessionKey=BOB, message="hi")).to_json()
        assert (answer["status"], answer["reply"], answer["delivery"]["mode"]) == ("ok", "hello", "announce")

    drive.ok(body, port)
    assert [request.send for request in port.requests] == [
        SendAsk(BOB, wait=True, mode="followup"),
        SendAsk(BOB, wait=True),
    ]
    assert all((request.route, request.expects) == ("send", False) for request in port.requests)
    assert port.log == ["spawn", "heard run-1"] * 2


def test_a_wait_gives_its_slot_back_and_what_runs_out_is_accepted(drive: Drive, port: FakePort) -> None:
    accepting(port, None)

    async def body(turn: Any) -> None:
        sent = await turn.send(BOB, "hi", timeout_seconds=0.02)
        assert (sent.status, sent.pending, sent.reply) == (SendStatus.ACCEPTED, True, None)

    drive.ok(body, port)
    assert port.log == ["spawn", "pause", "resume", "left run-1"]


def test_who_does_not_wait_opens_no_wait(drive: Drive, port: FakePort) -> None:
    accepting(port, None)

    async def body(turn: Any) -> None:
        assert (await turn.send(BOB, "hi", timeout_seconds=0)).status == "accepted"
        assert (await turn.send(None, "hi", label="w", agent_id="b", mode="notify")).status == "queued"

    drive.ok(body, port)
    assert [request.send for request in port.requests] == [SendAsk(BOB), SendAsk("", "w", "b", False, "notify")]
    assert port.log == ["spawn", "spawn"]


@pytest.mark.parametrize("drive", ["async"], indirect=True)
def test_a_wait_that_a_program_gives_up_is_left(drive: Drive, port: FakePort) -> None:
    accepting(port, None)

    async def body(turn: Any) -> str:
        try:
            async with asyncio.timeout(0.02):
                await turn.send(BOB, "hi", timeout_seconds=20)
        except TimeoutError:
            return "gave up"
        return ""

    drive.ok(body, port)
    assert "left run-1" in port.log


def test_a_stop_ends_the_wait(drive: Drive, port: FakePort) -> None:
    accepting(port, None)
    port.on_pause = [lambda: port.cancel("stopped")]

    async def body(turn: Any) -> None:
        await turn.send(BOB, "hi", timeout_seconds=20)

    assert drive(body, port).outcome.state in (RunState.CANCELLED, RunState.FAILED)
    assert "left run-1" in port.log


@pytest.mark.parametrize(
    ("receipt", "error"),
    [
        (Receipt("forbidden", error="no", limit="a2a_pair", path="tools.agentToAgent.allow"), SpawnForbidden),
        (Receipt("error", error="no agent or session"), SpawnError),
        (Receipt("error", error="full", limit=INBOX, value=3, maximum=3), InboxFull),
    ],
)
def test_a_refusal_is_raised_to_a_program_and_told_to_a_model(
    receipt: Receipt, error: type[Exception], drive: Drive, port: FakePort
) -> None:
    port.answer = lambda request: receipt

    async def body(turn: Any) -> None:
        with pytest.raises(error):
            await turn.send(BOB, "hi")
        answer = await turn.call("sessions_send", sessionKey=BOB, message="hi")
        assert answer.status == receipt.status
        assert str(receipt.error) in str(answer.error)

    drive.ok(body, port)


@pytest.mark.parametrize(
    "given",
    [
        {"sessionKey": BOB, "message": "hi", "timeoutSeconds": -1},
        {"sessionKey": BOB, "message": "hi", "timeoutSeconds": "5"},
        {"sessionKey": BOB, "message": "hi", "timeoutSeconds": True},
        {"sessionKey": BOB, "message": "hi", "timeoutSeconds": float("nan")},
        {"sessionKey": BOB, "message": "hi", "mode": "shout"},
        {"sessionKey": BOB, "message": "hi", "watch": True},
        {"sessionKey": BOB, "message": "hi", "to": BOB},
        {"label": "", "message": "hi"},
        {"label": "x" * 513, "message": "hi"},
        {"sessionKey": BOB},
    ],
)
def test_what_is_not_in_the_table_is_refused_before_anything_happens(
    given: dict[str, Any], drive: Drive, port: FakePort
) -> None:
    async def body(turn: Any) -> None:
        with pytest.raises(ToolInputError):
            await turn.call("sessions_send", **given)

    drive.ok(body, port)
    assert port.log == []


@pytest.mark.parametrize("given", [{"message": "hi"}, {"sessionKey": BOB, "message": "  "}])
def test_nobody_named_and_nothing_said_are_errors(given: dict[str, Any], drive: Drive, port: FakePort) -> None:
    async def body(turn: Any) -> None:
        assert (await turn.call("sessions_send", **given)).status == "error"
        with pytest.raises(ValueError, match=r"message|whom"):
            await turn.send(given.get("sessionKey"), given["message"])

    drive.ok(body, port)
    assert port.log == []


def test_a_turn_knows_where_its_message_came_from_and_what_it_is_told_besides(drive: Drive) -> None:
    source = MessageSource("agent:alice:main", "x", 3, 5, 4, "reply", "turn 3 of at most 5")
    news = News("y", MessageSource("agent:carol:main", "y"), "late", OK)

    async def body(turn: Any) -> None:
        assert turn.source == source
        told, said = turn.events
        assert (told.kind, told.text, told.sent, told.source.session_key) == ("message", "late", OK, "agent:carol:main")
        assert (said.kind, said.text, said.source, said.sent) == ("message", "hi", source, None)

    drive.ok(body, kind="message", text="hi", source=source, news=(news,))


@pytest.mark.parametrize("drive", ["sync"], indirect=True)
def test_cancelled_is_what_a_plain_turn_sees(drive: Drive, port: FakePort) -> None:
    accepting(port, None)
    port.on_pause = [lambda: port.cancel("stopped")]
    seen: list[str] = []

    async def body(turn: Any) -> None:
        try:
            await turn.send(BOB, "hi", timeout_seconds=20)
        except Cancelled:
            seen.append("cancelled")
            raise

    drive(body, port)
    assert seen == ["cancelled"]
