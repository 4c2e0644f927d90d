"""A parent that yields over three children, on a runtime whose first hub dies with the first announce it has written.

    ack_driver.py LOG         and ``DIES_AFTER_APPEND``
"""

from __future__ import annotations

import json
import sys

from fault_agents import AGENTS, CONFIG

import openclaw_ray as oc
from openclaw_ray.testing.eventually import eventually


def main() -> None:
    with oc.Runtime.start(agents=AGENTS, config=CONFIG) as rt:
        receipt = rt.spawn(agent_id="yielder", input=(sys.argv[1], 3, 0))
        result = rt.result(receipt, timeout=60)

        def rows() -> list[list[object]]:
            found = rt.history(receipt.session_key, limit=100)
            assert any(row["role"] == "assistant" for row in found)
            return [[row["role"], row.get("runId"), row["text"]] for row in found]

        shown = eventually(rows, 30)
        children = rt.runs(requester=receipt.session_key)
        deliveries = sorted((row["runId"], row["deliveryStatus"]) for row in children)
        print(json.dumps({"text": result.text, "rows": shown, "deliveries": deliveries}), flush=True)


if __name__ == "__main__":
    main()
