"""The measured chain with its unknowns, compiled, and the equations it makes of measurements."""
