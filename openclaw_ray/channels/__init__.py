"""Conversation adapters: how users talk with sessions. `Channel` is what one is, `CannotBind` what it may answer."""

from openclaw_ray.channels.channel import BindWish, CannotBind, Channel, Desk

__all__ = ["BindWish", "CannotBind", "Channel", "Desk"]
