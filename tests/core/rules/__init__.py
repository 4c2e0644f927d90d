"""PROTOCOL.md, rule by rule: schedules by hand, each right with its rule and wrong without it.

`hand.Hand` is a runtime without processes: registry, couriers, activations and hub are the real ones, the test is the
network. A test runs its schedule, then takes the rule out (`hand.without`) and sees the same schedule go wrong: it can
fail. Tests without that second half show consequences of a rule for which no single predicate stands.

Rules about Ray, real processes or files only, and where they are tested:

* 1.5 ``RuntimeUnavailable`` after ``registryTimeoutSeconds``: tests/faults/test_disk_full.py, test_drivers_end.py
* 1.6 which of Ray's errors mean death: tests/faults/test_rpc_failures.py; a frozen process: test_stops.py
* 1.7 threads of the registry's process; a step never waits: tests/faults/test_registry_killed.py
* 2.2 a new poll of a client ends its older one: actors/hub_actor.py, without a test of its own so far
* 3.1 labels, sandbox, cwd, and 3.6 preparing under a provisional id: come with the features
* 3.3 D lowered to ``pool.max`` − 1, or refused: tests/ray/test_ray_lanes.py; parked actors and sends come later
* 4.1 rows over 64 KB flush while the turn runs: actors/session_turn.py, without a test of its own so far
* 5.1 ``resume`` comes later; 5.4 ``TurnYielded``, and 5.6 ``timeout`` of ``rt.ask``: tests/agents, tests/ray
* 6.2 parents stop their children down the handles: tests/ray/test_ray_stop.py
* 6.5 cancelling: tests/agents/test_turn_cancel.py; 6.9 tools' processes: tests/faults/test_stops.py
* 7.2 how fast a death is seen, 7.3 restarts: tests/faults/test_sessions_killed.py, test_hub_and_pool_killed.py
* 7.4 append is idempotent, rows of lower activations are refused, torn lines are cut: tests/store/test_transcripts.py
* 7.6 what the clean check looks at: tests/agents/test_agent_hygiene.py, tests/ray/test_ray_isolation.py
* 7.7 groups of a session actor: tests/faults/test_stops.py
* 8 the bulk route does not exist yet
"""
