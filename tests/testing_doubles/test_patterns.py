"""Two patterns of OpenClaw, over a runtime of threads: master and workers that stay, and a pipeline (SPEC.md K)."""

from __future__ import annotations

from typing import Any

import pytest

import openclaw_ray as oc
from openclaw_ray.testing import LocalRuntime, assert_at_rest, eventually

CONFIG: dict[str, Any] = {"agents": {"defaults": {"subagents": {"allowAgents": ["*"]}}}}


@oc.agent(id="main")
def master(turn: oc.SyncTurn) -> dict[str, list[Any]]:
    """Two experts do a task each, and are asked after it: by label, each more than once."""
    born = {label: turn.spawn("read it", agent_id="expert", label=label) for label in ("security", "speed")}
    turn.join()
    told: dict[str, list[Any]] = {label: [receipt.session_key] for label, receipt in born.items()}
    for label, question in (("security", "risks?"), ("speed", "slow?"), ("security", "where?")):
        sent = turn.send(None, question, label=label)
        told[label].append((sent.status.value, sent.session_key, sent.reply))
    return told


class Expert(oc.Agent):
    def on_turn(self, turn: oc.SyncTurn) -> str:
        turn.state["heard"] = [*turn.state.get("heard", []), f"{turn.kind.value} {turn.text}"]
        said = [row["text"] for row in turn.history(100) if row["role"] == "assistant"]
        return f"{turn.session.label}: {turn.state['heard']} after {len(said)}"


def test_an_expert_that_has_ended_is_asked_by_its_label_and_has_its_transcript_and_state() -> None:
    with LocalRuntime([master, Expert], CONFIG) as rt:
        told = rt.ask("main", "go", timeout=20).raise_for_status().value
        security, speed = told["security"], told["speed"]
        assert security[0] != speed[0]
        assert security[1:] == [
            ("ok", security[0], "security: ['task read it', 'message risks?'] after 1"),
            ("ok", security[0], "security: ['task read it', 'message risks?', 'message where?'] after 2"),
        ]
        assert speed[1:] == [("ok", speed[0], "speed: ['task read it', 'message slow?'] after 1")]
        # the master is not called with what it has heard, and each question was one run
        eventually(lambda: assert_at_rest(rt), 10)
        assert len(rt.runs(agent="expert")) == 5
        assert len(rt.runs(agent="main")) == 1


@oc.agent(id="line")
def pipeline(turn: oc.SyncTurn) -> str:
    found = turn.text
    for stage in ("extractor", "cleaner", "summarizer"):
        [done] = turn.join(turn.spawn(found, agent_id=stage))
        found = done.result.raise_for_status().text or ""
    return found


@oc.agent(spawns=False)
def extractor(turn: oc.SyncTurn) -> str:
    return turn.text.replace("<p>", " ")


@oc.agent(spawns=False)
def cleaner(turn: oc.SyncTurn) -> str:
    if "broken" in turn.text:
        raise ValueError("cannot clean this")
    return " ".join(turn.text.split())


@oc.agent(spawns=False)
def summarizer(turn: oc.SyncTurn) -> str:
    return f"{len(turn.text.split())} words"


LINE = [pipeline, extractor, cleaner, summarizer]


def test_each_stage_of_a_pipeline_is_given_what_the_one_before_made() -> None:
    with LocalRuntime(LINE, CONFIG) as rt:
        assert rt.ask("line", "<p>Ray   runs<p>actors", timeout=20).text == "3 words"
        tasks = {row["agentId"]: row["task"] for row in rt.runs() if row["agentId"] != "line"}
        assert tasks["cleaner"] == " Ray   runs actors"
        assert tasks["summarizer"] == "Ray runs actors"


def test_a_stage_that_fails_ends_the_pipeline_by_its_name_and_no_later_one_begins() -> None:
    with LocalRuntime(LINE, CONFIG) as rt:
        with pytest.raises(oc.RunFailed, match=r"run \S+ of agent:cleaner:\S+ failed .*: cannot clean this"):
            rt.ask("line", "<p>broken", timeout=20)
        assert len(rt.runs(agent="cleaner")) == 1
        assert rt.runs(agent="summarizer") == []
