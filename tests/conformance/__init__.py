"""Runs the conformance cases (tests/cases/README.md) against the pure entry points of the library."""
