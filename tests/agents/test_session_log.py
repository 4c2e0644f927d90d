"""The output of a session process, from its first to its last moment (actors.session_log)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from openclaw_ray.core.log_lines import LogOf, as_records, as_text, lines_of, record

PROCESS = """
import logging, os, sys
from openclaw_ray.actors.session_log import SessionLog
from openclaw_ray.core.log_lines import LogOf

log = SessionLog(sys.argv[1], "a1", as_json="json" in sys.argv)
if len(sys.argv) > 2:
    print("loaded")
    for session in ("s1", "s2"):
        log.begin(LogOf("agent:w:" + session, "run of " + session, "root"))
        print("said in", session)
        if "json" in sys.argv:
            os.system("echo by a command")
            logging.getLogger("mine").info("two\\nlines")
            try:
                1 / 0
            except ZeroDivisionError:
                logging.exception("it failed")
            log.failed("agent:w:s1 failed: no good")
        log.end(session)
os.write(1, b"its end\\n")
os.abort()
"""


def run(state: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PROCESS, str(state), *more], capture_output=True, text=True)


def test_how_a_process_ends_that_ran_no_turn_is_told_in_its_own_file_only(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode < 0, done.stdout, done.stderr) == (True, "", "")
    assert (tmp_path / "logs" / "a1.out").read_text() == "its end\n"


def test_what_a_turn_writes_is_its_sessions_and_what_was_before_the_first_is_passed_on(tmp_path: Path) -> None:
    done = run(tmp_path, "turns")
    assert (done.stdout, done.stderr) == ("", "loaded\n")
    written = {path.name: path.read_text() for path in (tmp_path / "logs").iterdir()}
    assert written == {"s1.log": "said in s1\n", "s2.log": "said in s2\n", "a1.out": "its end\n"}


def test_with_json_logs_each_line_says_whose_it_is(tmp_path: Path) -> None:
    done = run(tmp_path, "turns", "json")
    texts = [(tmp_path / "logs" / f"{session}.log").read_text() for session in ("s1", "s2")]
    first, second = ([json.loads(line) for line in text.splitlines()] for text in texts)
    by = {(row["logger"], row.get("level")): row for row in first}
    whose = {"sessionKey": "agent:w:s1", "runId": "run of s1", "rootKey": "root"}
    assert all({name: row[name] for name in whose} == whose for row in first)
    assert {row["runId"] for row in second} == {"run of s2"}
    assert {row["message"] for row in first if row["logger"] == "output"} == {"by a command", "said in s1"}
    assert by["mine", "info"]["message"] == "two\nlines"
    assert "ZeroDivisionError" in by["root", "error"]["message"]
    # what Ray's driver sees of a failure, after what was written before the first turn
    told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert [(row["message"], row["level"], row["runId"]) for row in told] == [
        ("agent:w:s1 failed: no good", "error", f"run of {session}") for session in ("s1", "s2")
    ]


RECORD = record(LogOf("agent:w:s1", "r1", "root"), 0.0, "hello", logger="mine", level="info")


def test_a_record_stays_as_it_is_and_all_else_becomes_one() -> None:
    lines = [RECORD, b"plain \xff\r\n", b"\n", b'{"time": "x"}\n', b"last"]
    made = list(as_records(lines, LogOf("agent:w:s2", "r2", "root"), 1.0))
    assert made[0] == RECORD
    rest = [json.loads(line) for line in made[1:]]
    assert [row["message"] for row in rest] == ["plain \ufffd", '{"time": "x"}', "last"]
    assert {(row["runId"], row["logger"], row["time"]) for row in rest} == {
        ("r2", "output", "1970-01-01T00:00:01.000+00:00")
    }


def test_people_get_text_of_either_form() -> None:
    assert as_text(RECORD) == b"1970-01-01T00:00:00.000+00:00 info mine: hello\n"
    assert as_text(record(LogOf("s"), 0.0, "printed")) == b"printed\n"
    assert as_text(b"\xfe plain\n") == b"\xfe plain\n"
    assert list(lines_of([b"a\nb", b"c\nd"])) == [b"a\n", b"bc\n", b"d"]
