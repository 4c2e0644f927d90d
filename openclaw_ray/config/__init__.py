"""Configuration: a JSON5 file, text or dict in, a checked and frozen `Config` out (DESIGN.md 11).

A real OpenClaw file loads unmodified: what we implement is checked strictly, real keys that we do not
implement are tolerated and listed in `Config.tolerated`, what is accepted and does not act yet in `Config.notices`;
unknown keys are refused with the nearest match, all faults at once. Files may `$include` others, and texts may hold
`${NAME}` of the environment.

`Config.settings` are the values in force with their origins, `changes` compares two configurations, `table` and
`json_schema` describe the model. Actors never see this package (pydantic is heavy); they get the plain records of
`openclaw_ray.core.limits`.
"""

from __future__ import annotations

from openclaw_ray.config._changes import Change, TakesEffect, changes, limits_after
from openclaw_ray.config._config import Config
from openclaw_ray.config._describe import Row, json_schema, rows, table
from openclaw_ray.config._effective import A2A, Bindings, Setting
from openclaw_ray.config._load import load, loads
from openclaw_ray.config._notices import Notice, NoticeKind
from openclaw_ray.config._stale import StaleId, stale_ids
from openclaw_ray.core.errors import ConfigError, ConfigFault

__all__ = [
    "A2A",
    "Bindings",
    "Change",
    "Config",
    "ConfigError",
    "ConfigFault",
    "Notice",
    "NoticeKind",
    "Row",
    "Setting",
    "StaleId",
    "TakesEffect",
    "changes",
    "json_schema",
    "limits_after",
    "load",
    "loads",
    "rows",
    "stale_ids",
    "table",
]
