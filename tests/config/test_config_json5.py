"""JSON5 is read fast, and as the json5 package reads it (SCENARIOS.md 62)."""

from __future__ import annotations

import json
import time
from pathlib import Path

import json5
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_ray import config
from openclaw_ray.config import ConfigError
from openclaw_ray.config._json5 import Puzzled, as_json, text_of

ACCEPTED = [
    "{a: 1, 'b': \"c\", \"d\": [1, 2,], }",
    "[+1, -2, .5, 5., 0x1F, -0xa, 1e3, 1.e-2, -Infinity, +Infinity, -.5e+1]",
    "{// one\n/* two */ $a_1: null, b: [true, false]}",
    "'a\\\nb'",
    "'\\x41\\u0042\\'\\v\\0'",
    "'say \"hi\"'",
    "{}",
    "[]",
    "[[], {},]",
    "'http://x/* not a comment */'",
    "{Infinity: 1, null: 2, true: 3}",
    "'tab\there'",
    "{a: 'ä'}",
]
BROKEN = ["[,]", "{,}", "[1,,]", "{a:1,,}", "{a b: 1}", "{1: 2}", "01", "0x", "'a", "{a: b}", "1 2", "'a' 'b'", "/* a"]
REFUSED = [*BROKEN, "'a\nb'"]


@pytest.mark.parametrize("text", ACCEPTED)
def test_the_fast_way_reads_what_json5_reads(text: str) -> None:
    assert json.loads(as_json(text)) == json5.loads(text)


@pytest.mark.parametrize("text", REFUSED)
def test_the_fast_way_takes_nothing_that_json5_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        json5.loads(text)
    with pytest.raises(ValueError, match=r".*"):  # Puzzled is one, too
        json.loads(as_json(text))


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="{}[],:'\"ab01.+-xeE \n\\/*", max_size=12))
def test_the_fast_way_never_says_other_than_json5(text: str) -> None:
    try:
        fast = json.loads(as_json(text))
    except ValueError:
        return  # json5 decides
    assert fast == json5.loads(text)


def test_what_is_left_to_json5_is_said_so() -> None:
    with pytest.raises(Puzzled):
        as_json("{a: b}")
    with pytest.raises(Puzzled):
        text_of("'a\nb'")


def test_a_megabyte_of_json5_loads_in_a_moment(tmp_path: Path) -> None:
    entries = "\n".join(f"  a{n}: {{workspace: '~/w{n}', /* {'x' * 60} */ default: false,}}," for n in range(9_000))
    file = tmp_path / "openclaw.json"
    file.write_text(f"{{agents: {{entries: {{\n{entries}\n}}}}}}", encoding="utf-8")
    assert file.stat().st_size > 900_000
    began = time.process_time()
    loaded = config.load(file, env={})
    assert time.process_time() - began < 10
    assert len(loaded.agent_ids) == 9_000


def test_a_fault_in_a_megabyte_still_has_its_line(tmp_path: Path) -> None:
    lines = "\n".join(f"  a{n}: {{workspace: '~/w{n}', default: false,}}," for n in range(2_000))
    file = tmp_path / "openclaw.json"
    file.write_text(f"{{agents: {{entries: {{\n{lines}\n  b: {{defalt: true}},\n}}}}}}", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        config.load(file, env={})
    (fault,) = caught.value.faults
    assert (fault.path, fault.near, fault.line) == ("agents.entries.b.defalt", "default", 2_002)
