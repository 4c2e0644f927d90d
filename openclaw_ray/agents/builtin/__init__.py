"""Agents that come with the package: `exec_item` runs a command per item, `survey` reads a folder."""
