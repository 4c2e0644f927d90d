"""Tool policy: which tools a session may call, and which rule says so (SPEC.md A4, E)."""

from openclaw_ray.core.policy.inherited import Inherited, Layer, Origin, handed_on
from openclaw_ray.core.policy.names import tool_name
from openclaw_ray.core.policy.pipeline import Rule, Step, pipeline, sender_lists
from openclaw_ray.core.policy.rules import Names, ProviderRules, Sender, Senders, ToolLists, ToolRules, ToolSettings
from openclaw_ray.core.policy.view import Decision, ToolView, effective_tools

__all__ = [
    "Decision",
    "Inherited",
    "Layer",
    "Names",
    "Origin",
    "ProviderRules",
    "Rule",
    "Sender",
    "Senders",
    "Step",
    "ToolLists",
    "ToolRules",
    "ToolSettings",
    "ToolView",
    "effective_tools",
    "handed_on",
    "pipeline",
    "sender_lists",
    "tool_name",
]
