"""What a program holds: starting or joining a runtime, fan-outs, trees, stop, and looking."""
