"""PROTOCOL.md, rule by rule: schedules by hand, each right with its rule and wrong without it.

`hand.Hand` is a runtime without processes: registry, couriers, activations and hub are the real ones, the test is the
network. A test runs its schedule, then takes the rule out (`hand.without`) and sees the same schedule go wrong: it can
fail. Tests without that second half show consequences of a rule for which no single predicate stands.

Rules about Ray, real processes or files only, and where they are tested:

* 1.5 ``RuntimeUnavailable`` after ``registryTimeoutSeconds``: tests/faults/test_registry_killed.py, test_disk_full.py
* 1.6 which of Ray's errors mean death: tests/faults/test_sessions_killed.py, test_stops.py (a frozen process)
* 1.7 threads of the registry's process; a step never waits: tests/faults/test_registry_killed.py
* 2.2 a new poll of a client ends its older one: tests/faults/test_hub_and_pool_killed.py
* 3.3 D lowered to ``pool.max`` − 1, or refused: runtime/starting.py; tests/ray/test_ray_lanes.py
* 3.6 preparing under a provisional id: tests/ray (attachments, cwd and prompts come later)
* 4.1 rows over 64 KB flush while the turn runs: tests/agents/test_turn_*.py
* 5.4 ``TurnYielded`` and code after it: tests/ray/test_ray_turns.py; 5.6 ``timeout`` of ``rt.ask``: tests/ray
* 6.2 stops sent by parents down the handles, 6.5 cancelling, 6.9 tools' processes: tests/faults/test_stops.py
* 7.2 how fast a death is seen, 7.3 restarts: tests/faults/test_sessions_killed.py, test_hub_and_pool_killed.py
* 7.4 append is idempotent, rows of lower activations are refused, torn lines are cut: tests/store/test_transcripts.py
* 7.6 what the clean check looks at: tests/agents/test_agent_hygiene.py
* 7.7 groups of a session actor: tests/faults/test_stops.py
* 8 the bulk route does not exist yet
"""
