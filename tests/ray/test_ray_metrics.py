"""What Ray's own Prometheus endpoint gives of a runtime, with the extra ``dashboard``."""

from __future__ import annotations

import re
import urllib.request
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
import ray

from openclaw_ray.actors.metrics import agent_port
from openclaw_ray.core import metrics as m
from openclaw_ray.testing.eventually import eventually

if TYPE_CHECKING:
    import openclaw_ray as oc

pytestmark = pytest.mark.ray

COLLECTS = all(find_spec(name) is not None for name in ("aiohttp", "prometheus_client", "opencensus"))
NAMES = {metric.name for metric in m.METRICS}
LINE = re.compile(r"^ray_(openclaw_\w+)\{(.*)\} (\S+)$", re.MULTILINE)


def scraped() -> dict[str, list[tuple[dict[str, str], float]]]:
    """Our metrics at this node's endpoint: by name, tags and value of each series."""
    address = ray.util.get_node_ip_address()
    with urllib.request.urlopen(f"http://{address}:{agent_port()}/metrics", timeout=10) as page:
        text = page.read().decode()
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for name, tags, value in LINE.findall(text):
        name = name if name in NAMES else re.sub("_(bucket|sum|count)$", "", name)
        found.setdefault(name, []).append((dict(re.findall(r'(\w+)="([^"]*)"', tags)), float(value)))
    return found


@pytest.mark.skipif(not COLLECTS, reason="Ray collects metrics with the extra `dashboard` alone")
def test_runs_are_counted_at_rays_endpoint_without_a_key(rt: oc.Runtime) -> None:
    receipts = [rt.spawn("some words", "echo", label=f"label {n}") for n in range(3)]
    for receipt in receipts:
        rt.result(receipt, timeout=30).raise_for_status()

    def counted() -> dict[str, list[tuple[dict[str, str], float]]]:
        found = scraped()
        done = [
            value
            for tags, value in found.get(m.RUN_COMPLETED, [])
            if (tags["outcome"], tags["trigger"], tags["runtime"]) == ("ok", "spawn", "unnamed")
        ]
        assert sum(done) >= 3
        assert {m.RUN_DURATION, m.LANE_SIZE, m.LANE_WAIT, m.TURN_CREATED, m.SESSIONS, m.WORKERS} <= set(found)
        return found

    found = eventually(counted, 60, every=1.0)
    known = {metric.name: {"runtime", *metric.tags} for metric in m.METRICS}
    secret = ("agent:", "label", *(receipt.run_id for receipt in receipts))
    for name, series in found.items():
        for tags, _ in series:
            assert known[name] <= set(tags), "Ray adds tags of its own: node, worker, version, …"
            assert not [value for value in tags.values() if any(word in value for word in secret)]


@pytest.mark.skipif(COLLECTS, reason="Ray collects metrics here")
def test_where_nobody_collects_nothing_is_imported_or_kept(rt: oc.Runtime) -> None:
    from openclaw_ray.actors.metrics import MetricsLine

    rt.result(rt.spawn("some words", "echo"), timeout=30).raise_for_status()
    line = MetricsLine(registry=None)  # type: ignore[arg-type]
    line.run()  # it ends at once, and asks the registry for nothing
