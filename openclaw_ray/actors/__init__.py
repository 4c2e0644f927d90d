"""Thin Ray actors over the protocol: pool, registry, hub, sessions, and the courier thread of a process."""
