"""The message protocol as classes, events in and messages out; the rules are numbered in each module."""
