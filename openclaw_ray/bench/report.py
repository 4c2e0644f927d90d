"""One run as one HTML page that needs nothing else: figures, tables, plots inlined, caveats. Pure.

The images come from the caller (`openclaw_ray.bench.plots`), so that the page can be made and tested without them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from openclaw_ray.bench.catalogue import ABOUT
from openclaw_ray.bench.compare import is_busy
from openclaw_ray.bench.figures import Figure
from openclaw_ray.bench.plots import Plot

__all__ = ["CAVEATS", "number", "page"]

CAVEATS: Sequence[str] = (
    "Ratios, not rates: a rate is of one machine and minute. Ratios are of contenders measured in turn in one run.",
    "A no-op session is the worst case, all of it is overhead: journal, activation, clean check, verdict, transcript.",
    "A range is the least and the most of the rounds, or where the median of the samples lies with 95 % confidence.",
    "p99 of few samples is nearly their most. Look at how many there were.",
    "Ray itself is part of every figure but those of the registry, and its cost differs between versions.",
)

_OTHERS = {"limits": "the limit finder: throughput as concurrency was raised, and what it recommends"}
_SIGNS = {"<=": "≤", ">=": "≥"}
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; width: 100%; margin: .8rem 0; font-size: .92rem; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #e4e4e4; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1.2rem 0; } img { max-width: 100%; } figcaption, .about { color: #555; }
.pass { color: #1c6b34; } .fail { color: #a5201a; font-weight: 600; } .none { color: #777; }
.warn { background: #fff3d6; padding: .6rem .9rem; border-left: 4px solid #d79b00; }
"""


def page(document: Mapping[str, Any], plots: Sequence[Plot] = (), images: Mapping[str, bytes] | None = None) -> str:
    """The page.

    Args:
        document: of a run, see `openclaw_ray.bench.result`.
        plots: what there is to see. ``images``: PNG by the plot's name; one without an image is left out.
    """
    images = images or {}
    shown: dict[str, list[Plot]] = {}
    for plot in plots:
        if plot.name in images:
            shown.setdefault(plot.benchmark, []).append(plot)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>openclaw_ray benchmarks</title><style>{_STYLE}</style></head><body>",
        "<h1>openclaw_ray benchmarks</h1>",
        *_head(document),
        *_budget(document.get("budget") or {}),
    ]
    for result in document["results"]:
        parts.extend(_section(result, shown.get(str(result["benchmark"]), ()), images))
    parts.append("<h2>How to read this</h2>")
    parts.append("<ul>" + "".join(f"<li>{escape(text)}</li>" for text in CAVEATS) + "</ul>")
    parts.append("</body></html>")
    return "\n".join(parts) + "\n"


def number(value: float | None) -> str:
    """A figure for people: three or four digits that mean something."""
    if value is None:
        return "–"
    size = abs(value)
    if size >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if size >= 100 else f"{value:.3g}"


def _head(document: Mapping[str, Any]) -> Iterator[str]:
    host, versions = document.get("host", {}), document.get("versions", {})
    facts = [f"{host.get('cpus', '?')} CPUs", f"{host.get('memory_gib', '?')} GiB", str(host.get("system", ""))]
    facts += [f"{name} {version}" for name, version in versions.items()]
    size = "quick" if document.get("quick") else "full"
    yield f'<p class="about">{escape(", ".join(facts))}; {size} run of {number(document.get("seconds"))} s.</p>'
    if is_busy(document):
        load = document["host"]["load_before"][0]
        yield (
            f'<p class="warn">The machine was busy when this run began (load {load:g} on {host.get("cpus")} CPUs): '
            "its rates, and verdicts that rest on times, are not to be relied on.</p>"
        )


def _budget(budget: Mapping[str, Any]) -> Iterator[str]:
    lines = budget.get("lines")
    if not lines:
        return
    yield f"<h2>Performance budget, column “{escape(str(budget.get('column', 'final')))}”</h2>"
    rows = []
    for line in lines:
        verdict = str(line["verdict"])
        word = verdict if verdict in ("pass", "fail") else "none"
        rows.append(
            [
                escape(line["what"]),
                _n(f"{number(line['value'])} {line['unit']}" if line["value"] is not None else "–"),
                _n(_bound(line)),
                f'<span class="{word}">{escape(verdict)}</span>',
                escape(line.get("note", "")),
            ]
        )
    yield _table(("measure", ">value", ">bound", "verdict", "note"), rows)


def _bound(line: Mapping[str, Any]) -> str:
    if not line["bound"]:
        return "–"
    word, _, bound = str(line["bound"]).partition(" ")
    return escape(f"{_SIGNS.get(word, word)} {bound} {line['unit']}")


def _section(result: Mapping[str, Any], plots: Iterable[Plot], images: Mapping[str, bytes]) -> Iterator[str]:
    name = str(result["benchmark"])
    yield f"<h2>{escape(name)}</h2>"
    yield f'<p class="about">{escape(ABOUT.get(name, _OTHERS.get(name, "")))}</p>'
    for word in ("skipped", "failed"):
        if result.get(word):
            yield f'<p class="warn">{word}: {escape(str(result[word]))}</p>'
    for plot in plots:
        data = base64.b64encode(images[plot.name]).decode("ascii")
        yield f'<figure><img alt="{escape(plot.title)}" src="data:image/png;base64,{data}">'
        yield f"<figcaption>{escape(plot.title)}. {escape(plot.caption)}</figcaption></figure>"
    figures = {key: Figure.from_json(data) for key, data in result.get("figures", {}).items()}
    if figures:
        rows = [
            [
                escape(_words(key)),
                _n(number(figure.median)),
                _n(f"{number(figure.low)} … {number(figure.high)}"),
                escape(figure.unit),
                _n(str(figure.count)),
            ]
            for key, figure in figures.items()
        ]
        yield _table(("figure", ">median", ">range", "unit", ">rounds or samples"), rows)
    if latency := result.get("latency"):
        columns = ("p50_ms", "p90_ms", "p99_ms", "max_ms")
        rows = [[escape(_words(key)), *(_n(number(row.get(c))) for c in columns)] for key, row in latency.items()]
        yield _table(("milliseconds", ">p50", ">p90", ">p99", ">most"), rows)
    yield from _small_print(result)


def _small_print(result: Mapping[str, Any]) -> Iterator[str]:
    config = ", ".join(f"{key} {value}" for key, value in result.get("config", {}).items())
    peak = result.get("peak_memory_mb")
    said = [f"Sizes: {config}." if config else "", "" if peak is None else f"Peak memory {number(peak)} MB."]
    said.append(f"{number(result.get('seconds'))} s." if result.get("seconds") is not None else "")
    yield f'<p class="about">{escape(" ".join(text for text in said if text))}</p>'
    if notes := result.get("notes"):
        yield "<ul>" + "".join(f"<li>{escape(str(note))}</li>" for note in notes) + "</ul>"


def _words(key: str) -> str:
    return key.replace("_", " ")


def _n(text: str) -> str:
    return f"\0{text}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are HTML already; ``>`` before a heading, or a NUL before a cell, sets it to the right."""
    out = ["<table><thead><tr>"]
    out += [f'<th class="n">{cell[1:]}</th>' if cell.startswith(">") else f"<th>{cell}</th>" for cell in head]
    out.append("</tr></thead><tbody>")
    for row in rows:
        cells = (f'<td class="n">{c[1:]}</td>' if c.startswith("\0") else f"<td>{c}</td>" for c in row)
        out.append(f"<tr>{''.join(cells)}</tr>")
    out.append("</tbody></table>")
    return "".join(out)
