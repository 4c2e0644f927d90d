"""The benchmark suite: what it measures, the performance budget, knees and limits, reports and comparisons.

Between the command line and the runtime; loaded by ``openclaw-ray bench`` and the scripts of ``benchmarks/`` alone.
"""
