"""``doctor``: its rules on given facts, how facts are gathered, and what the command prints."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from openclaw_ray.cli import doctor as doctor_module
from openclaw_ray.cli import doctor_gather
from openclaw_ray.cli.doctor_checks import RAY_AT_LEAST, RAY_BELOW, Check, Verdict, check_all
from openclaw_ray.cli.doctor_facts import Cluster, Facts, Leftover, Node
from openclaw_ray.cli.doctor_gather import state_facts
from openclaw_ray.cli.doctor_nodes import check_nodes
from openclaw_ray.cli.main import run
from openclaw_ray.cli.ray_probe import versions_in
from openclaw_ray.cli.view import LiveView
from openclaw_ray.store import places
from openclaw_ray.store.sqlite_journal import SqliteJournal

GB = 1 << 30
WELL = Facts(
    python="3.11.9",
    ray="2.60.0",
    open_files=1 << 20,
    pool_max=100,
    pool_max_set=True,
    session_bytes=50 << 20,
    memory_available=16 * GB,
    memory_total=20 * GB,
    shm_free=8 * GB,
    state_dir="/state",
    state_free=50 * GB,
    config_source="defaults",
)
HERE = {"address": "head:6379", "cluster": Cluster(ray="2.60.0", python="3.11.9", nodes=3, cpus=48.0)}
LEFT = Leftover("run-1", "/tmp/ray/session_1/openclaw_ray/run-1", 1000, 0, kept=False)


def check(facts: Facts, name: str) -> Check:
    (found,) = [each for each in check_all(facts) if each.name == name]
    return found


def test_a_machine_that_is_well_has_nothing_to_mend() -> None:
    found = check_all(WELL)
    assert [each.name for each in found] == [
        "ray", "cluster", "config", "open files", "memory", "/dev/shm", "state dir", "leftovers",
    ]  # fmt: skip
    assert {each.verdict for each in found} == {Verdict.OK}
    assert {each.remedy for each in found} == {""}


CASES: list[tuple[str, dict[str, Any], str, str, str]] = [
    ("ray", {"ray": "", "ray_error": "no module"}, "fail", "does not import: no module", "pip install 'ray>=2.55,<3'"),
    ("ray", {"ray": "2.54.1"}, "fail", "Ray 2.54.1 is outside", "pip install"),
    ("ray", {"ray": "3.0.0"}, "fail", "Ray 3.0.0 is outside", "pip install"),
    ("ray", {"ray": "2.100.0rc1"}, "ok", "Ray 2.100.0rc1 on Python 3.11.9", ""),
    ("cluster", HERE, "ok", "3 nodes, 48 CPUs, Python 3.11.9", ""),
    ("cluster", {**HERE, "cluster": Cluster(error="refused")}, "fail", "refused", "check --address or RAY_ADDRESS"),
    (
        "cluster",
        {**HERE, "cluster": Cluster(error="Version mismatch", python="3.12.1", ray="2.60.0")},
        "fail",
        "has Python 3.12.1, Ray 2.60.0; here is Python 3.11.9, Ray 2.60.0",
        "use an environment with Python 3.12.1 and ray==2.60.0",
    ),
    ("token", {**HERE, "auth_mode": "Token"}, "fail", "there is no token here", "set RAY_AUTH_TOKEN"),
    ("config", {"config_error": "ray.pool.max: bad", "config_source": "/c"}, "fail", "ray.pool.max: bad", "mend /c"),
    ("config", {"config_tolerated": 3}, "ok", "3 keys in it are OpenClaw's", ""),
    (
        "allowlists",
        {"stale_allowed": ("/c:3: agents.defaults.subagents.allowAgents[0] names 'dcos', which is no agent", "b")},
        "warn",
        "/c:3: agents.defaults.subagents.allowAgents[0] names 'dcos', which is no agent (and 1 more)",
        "leave it if that agent is passed in code",
    ),
    ("open files", {"open_files": None}, "ok", "no limit", ""),
    ("open files", {"open_files": 656}, "ok", "needs about 656", ""),
    ("open files", {"open_files": 655}, "warn", "the hard limit is 655", "set ray.pool.max to 99 or less"),
    ("open files", {"open_files": 64}, "fail", "the hard limit is 64", "ulimit -Hn 656"),
    ("memory", {"memory_available": 5 * GB}, "warn", "5,120 MB of 20.0 GB", "set ray.pool.max to 98 or less"),
    ("memory", {"memory_available": 4 * GB, "memory_total": 5 * GB}, "fail", "100 × 50 MB", "ray.pool.max to 77"),
    ("memory", {"memory_available": GB, "pool_max_set": False}, "ok", "100 × 50 MB", ""),
    ("memory", {"session_measured": True}, "ok", "measured here", ""),
    ("/dev/shm", {"shm_free": 64 << 20}, "warn", "only 64 MB free", "--shm-size=1024m"),
    ("/dev/shm", {"shm_free": None}, "warn", "there is none", "--shm-size"),
    ("state dir", {"state_error": "read-only"}, "fail", "/state: read-only", "--state or OPENCLAW_STATE_DIR"),
    ("state dir", {"state_free": 50 << 20}, "fail", "50 MB free", "free some room"),
    ("state dir", {"state_free": 500 << 20}, "warn", "500 MB free", "free some room"),
    ("leftovers", {"leftovers": (LEFT,)}, "ok", "state of 1 runtimes that nobody has open", ""),
    ("leftovers", {"leftovers": (LEFT, replace(LEFT, size=2 * GB))}, "warn", "state of 2", "runs --state"),
    ("leftovers", {"leftovers": (replace(LEFT, unended=4),)}, "warn", "1 of them died with runs", LEFT.path),
    ("leftovers", {"leftovers": (replace(LEFT, unended=None),)}, "warn", "or cannot be read", LEFT.path),
]


@pytest.mark.parametrize(("name", "seen", "verdict", "detail", "remedy"), CASES)
def test_a_finding_has_its_figures_and_its_remedy(
    name: str, seen: dict[str, Any], verdict: str, detail: str, remedy: str
) -> None:
    found = check(replace(WELL, **seen), name)
    assert found.verdict.value == verdict
    assert detail in found.detail
    assert remedy in found.remedy
    assert bool(found.remedy) == (verdict != "ok")


def test_a_token_that_is_there_is_no_finding() -> None:
    facts = replace(WELL, **{**HERE, "auth_mode": "token", "has_token": True})
    assert "token" not in [each.name for each in check_all(facts)]


def test_without_a_sound_configuration_nothing_is_said_of_the_pool() -> None:
    names = [each.name for each in check_all(replace(WELL, pool_max=None, config_error="bad"))]
    assert "memory" not in names
    assert "open files" not in names


def test_the_range_of_ray_is_that_of_the_package() -> None:
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    found = re.search(r'"ray>=([\d.]+),<([\d.]+)"', project)
    assert found is not None
    assert tuple(map(int, found[1].split("."))) == RAY_AT_LEAST
    assert tuple(map(int, found[2].split("."))) == RAY_BELOW


def test_the_clusters_versions_are_in_rays_message() -> None:
    text = "Version mismatch: The cluster was started with:\n    Ray: 2.60.0\n    Python: 3.12.1\nThis process on x …"
    assert versions_in(text) == {"ray": "2.60.0", "python": "3.12.1"}
    assert versions_in("timed out") == {}


def test_a_state_dir_that_is_not_there_yet_is_judged_by_what_is_above_it(tmp_path: Path) -> None:
    error, free = state_facts(tmp_path / "a" / "b")
    assert error == ""
    assert free is not None
    assert free > 0
    assert list(tmp_path.iterdir()) == []  # nothing is made, nothing is left
    (tmp_path / "file").write_text("")
    assert state_facts(tmp_path / "file" / "x") == (f"{tmp_path / 'file'} is not a directory", None)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "OPENCLAW_CONFIG_PATH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_facts_are_gathered_and_leftovers_are_listed_and_kept(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dead = home / "ray" / "session_x" / "openclaw_ray" / "run-1"
    named = home / "ray" / "mine"
    for folder in (dead, named):
        folder.mkdir(parents=True)
        SqliteJournal(folder / places.JOURNAL).close()
    assert run(["doctor", "--json", "--state", str(home / "state")]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["ok"] is True
    assert {each["verdict"] for each in whole["checks"]} <= {"ok", "warn"}
    # a named runtime's state is meant to stay
    assert [(each["path"], each["unendedRuns"]) for each in whole["leftovers"]] == [(str(dead), 0)]
    assert dead.is_dir()
    assert not (home / "state").exists()


def test_a_wrong_configuration_and_an_address_where_nobody_listens_fail(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "c.json5").write_text("{ray: {pool: {max: 'x'}}}")
    assert run(["doctor", "--config", str(home / "c.json5"), "--address", "127.0.0.1:1"]) == 1
    text = capsys.readouterr().out
    assert re.search(r"^fail +config", text, re.M)
    assert re.search(r"^fail +cluster +no Ray cluster at 127.0.0.1:1: ", text, re.M)
    assert "\ufffd" not in text  # texts of several lines are in one


def test_a_cluster_that_never_answers_is_given_up(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_gather, "REACH_WITHIN", 0.01)
    facts = doctor_gather.gather("127.0.0.1:1", None, None)
    assert facts.cluster == Cluster(error="no answer within 0.01 s")


def test_a_token_is_looked_for_where_ray_does(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen() -> bool:
        return doctor_gather.gather(None, None, None).has_token

    assert not seen()
    (home / ".ray").mkdir()
    (home / ".ray" / "auth_token").write_text("t")
    assert seen()
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(home / "none"))
    assert not seen()
    monkeypatch.setenv("RAY_AUTH_TOKEN", "t")
    assert seen()


def test_many_leftovers_are_named_in_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = replace(WELL, leftovers=(LEFT, *(replace(LEFT, unended=1),) * 8))
    monkeypatch.setattr(doctor_module, "look", lambda *_: facts)
    assert run(["doctor"]) == 0
    captured = capsys.readouterr()
    assert captured.err.count("died with something un-ended") == 5
    assert "and 3 more" in captured.err
    assert "ok" in captured.out


def test_fix_clears_tombstones_of_the_runtime_that_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []

    class Here:
        def clear_tombstones(self) -> tuple[str, ...]:
            return ("agent:keeper:main",)

    @contextlib.contextmanager
    def live(name: str) -> Iterator[SimpleNamespace]:
        opened.append(name)
        yield SimpleNamespace(runtime=Here())

    monkeypatch.setattr(doctor_module, "look", lambda *_: WELL)
    monkeypatch.setattr(LiveView, "open", live)
    assert run(["doctor"]) == 0
    assert opened == []
    assert run(["doctor", "--fix", "--name", "nightly"]) == 0
    assert opened == ["nightly"]
    assert "agent:keeper:main of runtime nightly is resumed again" in capsys.readouterr().err


NODE = Node(
    "n1", "", "2.60.0", "3.11.9", "0.1.0", 0.0, 0.001, open_files=65_535, memory_available=8 * GB, memory_total=16 * GB
)


def of_nodes(*more: dict[str, Any], **facts: Any) -> dict[str, Check]:
    """Findings about a cluster of ``n1`` and nodes that differ from it so."""
    nodes = (NODE, *(replace(NODE, name=f"n{number}", **each) for number, each in enumerate(more, start=2)))
    cluster = replace(HERE["cluster"], nodes=len(nodes), per_node=nodes)
    return {each.name: each for each in check_nodes(replace(WELL, address="head:6379", cluster=cluster, **facts))}


def test_nodes_that_are_alike_have_nothing_to_mend() -> None:
    found = of_nodes({}, {})
    assert {each.verdict for each in found.values()} == {Verdict.OK}
    assert found["node versions"].detail == "Ray 2.60.0 on Python 3.11.9 on all"
    assert found["node memory"].detail == "24.0 GB available on 3 nodes"


def test_one_node_alone_is_not_compared() -> None:
    assert of_nodes() == {}
    assert list(check_nodes(WELL)) == []


NODE_CASES: list[tuple[str, list[dict[str, Any]], dict[str, Any], str, str, str]] = [
    ("nodes", [{"error": "nothing in time"}], {}, "warn", "nothing in time on n2", "raylet.err"),
    ("node versions", [{}, {"ray": "2.55.0"}], {}, "fail", "but Ray 2.55.0 on Python 3.11.9 on n3", "one environment"),
    ("node versions", [{}, {"python": "3.12.1"}], {}, "fail", "but Ray 2.60.0 on Python 3.12.1 on n3", "Ray 2.60.0"),
    ("node packages", [{}, {"package": ""}], {}, "warn", "openclaw_ray 0.1.0 on most, but none on n3", "pip install"),
    ("node clocks", [{"ahead": 4.0}], {}, "warn", "4.00 s apart at most (± 0.00 s): n2 is ahead of n1", "chrony"),
    ("node open files", [{"open_files": 300}], {}, "warn", "about 456 are needed on each", "ulimit -n 65535"),
    ("node memory", [{"memory_available": GB // 2}], {}, "warn", "512 MB of 16.0 GB on n2", "95 %"),
    ("node memory", [{}], {"pool_max": 1000}, "warn", "16.0 GB available on 2 nodes; ray.pool.max 1000", "to 327 or"),
]


@pytest.mark.parametrize(("name", "more", "facts", "verdict", "detail", "remedy"), NODE_CASES)
def test_a_node_that_differs_is_named_with_the_remedy(
    name: str, more: list[dict[str, Any]], facts: dict[str, Any], verdict: str, detail: str, remedy: str
) -> None:
    found = of_nodes(*more, **facts)
    assert found[name].verdict.value == verdict
    assert detail in found[name].detail
    assert remedy in found[name].remedy
    assert [each.name for each in found.values() if each.verdict is not Verdict.OK] == [name]


def test_clocks_that_cannot_be_told_apart_are_well() -> None:
    found = of_nodes({"ahead": 1.5, "unsure": 0.8})
    assert found["node clocks"].verdict is Verdict.OK
