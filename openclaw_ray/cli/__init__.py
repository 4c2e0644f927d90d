"""``openclaw-ray …``: click commands, one module per command group.

Data goes to standard output, progress and notes to standard error. Nothing here imports Ray, rich or the
runtime before a command needs it.
"""
