"""The budget, comparisons and the page, from made-up results; and what the command line makes of its arguments."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from made_up import curve, document, figure, result

from openclaw_ray.agents.bundle import make_bundle
from openclaw_ray.bench import catalogue, rig
from openclaw_ray.bench.budget import LINES, Column, Verdict, budget_of, missed
from openclaw_ray.bench.compare import Word, compare
from openclaw_ray.bench.plots import draw_all, plots_of
from openclaw_ray.bench.report import page
from openclaw_ray.bench.result import NotResults, read_document
from openclaw_ray.cli.main import run

AGENT_MAKERS = {
    *("_fork", "_stamp", "_parent", "_chain", "_work", "_tree", "_caller"),
    *("_answerer", "_waiter", "_skynet", "_leaf", "_square"),
}

# ---------------------------------------------------------------------- budget


def verdicts(results: list[dict[str, Any]], column: Column = Column.FINAL) -> dict[str, Verdict]:
    return {standing.line.name: standing.verdict for standing in budget_of(results, column)}


def test_a_line_passes_fails_or_was_not_measured_by_its_column() -> None:
    results = [result(budget={"map_vs_tasks": 0.30, "map_vs_actor_pool": 0.19, "step_cpu_p99_ms": 2.0})]
    first, final = verdicts(results, Column.FIRST), verdicts(results)
    assert (first["map_vs_tasks"], final["map_vs_tasks"]) == (Verdict.PASS, Verdict.FAIL)
    assert (first["map_vs_actor_pool"], final["map_vs_actor_pool"]) == (Verdict.FAIL, Verdict.FAIL)
    assert final["step_cpu_p99_ms"] is Verdict.PASS  # the bound itself is within it
    assert final["turn_map_vs_tasks"] is final["registry_back_s"] is Verdict.NOT_MEASURED
    assert [standing.line.name for standing in missed(budget_of(results, Column.FIRST))] == ["map_vs_actor_pool"]


def test_the_bound_of_a_deaf_stop_counts_from_the_grace() -> None:
    def verdict(seconds: float) -> Verdict:
        return verdicts([result("stop", config={"grace": 2.0}, budget={"stop_deaf_s": seconds})])["stop_deaf_s"]

    assert (verdict(2.9), verdict(3.1)) == (Verdict.PASS, Verdict.FAIL)


def test_what_was_not_measured_says_why() -> None:
    results = [
        result("stop", skipped="no room"),
        result("memory", failed="ValueError: x"),
        result(budget_notes={"cost_per_session_growth": "measured at 5,000"}),
    ]
    notes = {standing.line.name: standing.note for standing in budget_of(results)}
    assert notes["stop_cooperative_s"] == "no room"
    assert notes["idle_actor_extra_mb"] == "ValueError: x"
    assert notes["cost_per_session_growth"] == "measured at 5,000"
    assert notes["registry_back_s"] == "recovery did not run"
    assert all(standing.note for standing in budget_of(results))


def test_every_line_is_of_a_benchmark_that_there_is() -> None:
    assert {line.benchmark for line in LINES} - {""} <= set(catalogue.ABOUT)
    assert len({line.name for line in LINES}) == len(LINES)


# ---------------------------------------------------------------------- compare


def compared(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Word]:
    one, other = (
        document(result(figures={name: f.to_json() for name, f in figures.items()})) for figures in (a, b)
    )
    return {each.name: each.word for each in compare(one, other).differences}


def test_ranges_that_meet_are_noise_and_others_are_better_or_worse_by_their_direction() -> None:
    before = {
        "rate": figure(100, 90, 110),
        "noisy": figure(100, 50, 150),
        "time": figure(10, 9, 11, "less"),
        "same": figure(100, 99.9, 100.1),
    }
    after = {
        "rate": figure(150, 140, 160),
        "noisy": figure(150, 120, 200),
        "time": figure(20, 18, 22, "less"),
        "same": figure(101, 100.9, 101.1),
    }
    assert compared(before, after) == {
        "rate": Word.BETTER,
        "noisy": Word.NOISE,
        "time": Word.WORSE,
        "same": Word.NOISE,
    }
    assert compared(after, before)["rate"] is Word.WORSE


def test_what_makes_a_comparison_doubtful_is_said() -> None:
    other_host = {"cpus": 64, "memory_gib": 8.0, "system": "Linux 6", "load_before": [60.0, 1.0, 1.0]}
    first = document(result(figures={"rate": figure(1).to_json()}), result("depth"))
    second = document(result(config={"width": 8}), result("skynet"), host=other_host, quick=False)
    said = "\n".join(compare(first, second).caveats)
    for words in (
        "cpus 2 and 64",
        "width 16 and 8",
        "depth: only A has it",
        "skynet: only B has it",
        "B began on a busy machine",
        "one run is quick",
    ):
        assert words in said
    assert compare(first, first).caveats == ()


# ---------------------------------------------------------------------- documents


def test_a_result_alone_is_read_as_a_run_of_it(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(result()))
    assert [each["benchmark"] for each in read_document(path)["results"]] == ["fork_join"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"results": [1]}', "nothing"])
def test_another_file_is_refused_with_the_way_to_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(NotResults, match=r"bench --json > RESULTS\.json"):
        read_document(path)


# ---------------------------------------------------------------------- page


CURVES = {
    "concurrency": [point.to_json() for point in curve(100, 190, 350, 360, 340, noise=0.05)],
    "stop": [
        {"kind": kind, "depth": depth, "fan": 3, "sessions": sessions, "p50_ms": base * sessions, "p99_ms": 400.0}
        for kind, base in (("cooperative", 2.0), ("deaf", 60.0))
        for depth, sessions in ((1, 4), (2, 13), (3, 40))
    ],
    "memory": [
        {"kind": kind, "sessions": n, "registry_mb": 40 + n / 100, "total_mb": 300.0}
        for kind in ("ended", "passive")
        for n in (100, 500, 1000)
    ],
    "registry": [
        {"rows": n, "session_cpu_ms": 1.2, "step_p50_ms": 0.4, "step_p99_ms": 1.1} for n in (100, 1_000, 10_000)
    ],
    "depth": [{"depth": n, "p50_ms": 5.0 * n} for n in (1, 2, 4)],
}


class _Balanced(HTMLParser):
    """Open elements, and every address that the page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_has_figures_tables_and_caveats_and_loads_nothing() -> None:
    results = [
        result(
            figures={"map": figure(235.4, 230, 240).to_json()},
            latency={"result": {"p50_ms": 4.2, "p90_ms": 5.0, "p99_ms": 9.0, "max_ms": 12.0}},
            curves=CURVES,
            notes=["a <note> of its own"],
            budget={"map_vs_tasks": 0.1},
        ),
        result("pipeline", skipped="Ray Data is not installed"),
    ]
    lines = {"column": "final", "lines": [each.to_json() for each in budget_of(results)]}
    whole = document(*results, budget=lines)
    plots = plots_of(whole["results"])
    assert {plot.curve for plot in plots} == set(CURVES)
    made = page(whole, plots, {plot.name: b"\x89PNG" for plot in plots})
    parser = _Balanced()
    parser.feed(made)
    assert parser.open == []
    assert len(parser.loads) == len(CURVES)
    assert all(each.startswith("data:image/png;base64,") for each in parser.loads)
    for words in ("235", "230 … 240", "4.2", "a &lt;note&gt; of its own", "Ray Data is not installed", "≥ 0.5 x"):
        assert words in made
    assert '<span class="fail">fail</span>' in made
    assert "busy" not in made
    assert "busy" in page({**whole, "host": {"cpus": 2, "load_before": [9.0]}})


def test_plots_are_drawn_from_every_curve() -> None:
    pytest.importorskip("matplotlib")
    images = draw_all(plots_of([result(curves=CURVES)]))
    assert len(images) == len(CURVES)
    assert all(image.startswith(b"\x89PNG") and len(image) > 5_000 for image in images.values())
    assert "matplotlib.pyplot" not in sys.modules  # nobody's global state is touched


# ---------------------------------------------------------------------- command line


def test_the_command_refuses_what_it_cannot_measure(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "fork_joyn"]) == 2
    assert "there is no benchmark 'fork_joyn'; there are fork_join" in capsys.readouterr().err
    assert run(["bench", "depth", "--set", "depth.deeps=[1]"]) == 2
    assert "there are depths, rounds" in capsys.readouterr().err
    assert run(["bench", "depth", "--set", 'depth.rounds="3"']) == 2
    assert 'rounds is a int, as in 30, not "3"' in capsys.readouterr().err
    assert run(["bench", "depth", "--set", "stop.rounds=3"]) == 2
    assert "the name of a benchmark that runs" in capsys.readouterr().err


def test_a_run_of_the_registry_alone_is_one_object_with_its_budget(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "a.json"
    sizes = ["--set", "registry.rows=[20,60]", "--set", "registry.window=20", "--set", "registry.width=4"]
    assert run(["bench", "registry", "--quick", "--json", "-o", str(file), *sizes]) == 0
    out = capsys.readouterr().out
    assert json.loads(out) == json.loads(file.read_text())
    [found] = json.loads(out)["results"]
    assert found["config"] == {"rows": [20, 60], "window": 20, "width": 4}
    assert [row["rows"] for row in found["curves"]["registry"]] == [20, 60]
    assert found["figures"]["sessions_at_60_rows"]["median"] > 0
    assert "ray" not in str(found.get("failed", ""))
    assert not re.search(r"/(home|root|tmp)/", out)

    assert run(["bench", "compare", str(file), str(file), "--json"]) == 0
    same = json.loads(capsys.readouterr().out)
    assert same["differences"]
    assert {each["word"] for each in same["differences"]} == {"noise"}


def test_a_missed_line_is_exit_status_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    values = {"map_vs_tasks": 0.3}
    monkeypatch.setattr(catalogue, "run_one", lambda rig, name, **_: result(name, budget=values))
    assert run(["bench", "fork_join", "--json"]) == 1
    assert run(["bench", "fork_join", "--json", "--against", "first"]) == 0
    capsys.readouterr()
    assert run(["bench", "fork_join"]) == 1
    assert "rt.map of Ray tasks" in capsys.readouterr().out
    monkeypatch.setattr(catalogue, "run_one", lambda rig, name, **_: result(name, failed="ValueError: x"))
    assert run(["bench", "fork_join", "--json"]) == 1


def test_a_report_of_no_results_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    assert run(["bench", "report", str(other), "-o", str(tmp_path / "x.html")]) == 2
    assert "has no benchmark results" in capsys.readouterr().err


def test_the_script_of_each_benchmark_is_there() -> None:
    scripts = Path(__file__).parents[2] / "benchmarks"
    assert {path.stem for path in scripts.glob("*.py")} == set(catalogue.ABOUT)
    for name in catalogue.ABOUT:
        benchmark = catalogue.find(name)
        assert set(benchmark.QUICK) == set(benchmark.FULL)
        assert callable(benchmark.measure)


def test_nothing_of_the_suite_is_in_the_session_processes_that_it_measures(tmp_path: Path) -> None:
    """Its agents travel by value, as those of users do: an agent by reference would be cheaper than any of theirs."""
    agents = [rig.noop_agent()]
    for name in catalogue.ABOUT:
        suite = catalogue.find(name)
        makers = [make for word, make in vars(suite).items() if word in AGENT_MAKERS]
        agents += [make() for make in makers]
    assert len(agents) == 13
    bundle = make_bundle(agents)
    (tmp_path / "bundle").write_bytes(bundle.data)
    code = (
        "import sys; from openclaw_ray.agents.bundle import load_bundle;"
        "loaded = load_bundle(open(sys.argv[1], 'rb').read(), ());"
        "print(len([loaded.construct(agent) for agent in loaded.ids]), 'openclaw_ray.bench' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "bundle")], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["13", "False"]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_quick_suite_measures_on_a_real_runtime(tmp_path: Path) -> None:
    """Whatever the machine's minute makes of the figures: all of them are there, and nothing has failed."""
    file = tmp_path / "results.json"
    sizes = ["depth.depths=[1,2]", "depth.rounds=2", "ping_pong.messages=5", "ping_pong.exchanges=1"]
    settings = [word for size in sizes for word in ("--set", size)]
    command = [sys.executable, "-m", "openclaw_ray.cli.main", "bench", "depth", "ping_pong", "--quick", "--json"]
    done = subprocess.run(
        [*command, "-o", str(file), *settings], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    found = {each["benchmark"]: each for each in json.loads(done.stdout)["results"]}
    assert not any("failed" in each or "skipped" in each for each in found.values())
    assert [row["depth"] for row in found["depth"]["curves"]["depth"]] == [1, 2]
    assert {"round_trip", "bare_round_trip", "turns_per_second"} <= set(found["ping_pong"]["figures"])
    assert found["depth"]["peak_memory_mb"] > 0
