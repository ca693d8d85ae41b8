"""Settings of the whole test run."""

from __future__ import annotations

import os

from hypothesis import settings

# Test processes share the cores already: threads inside linear algebra would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples in every run, and no clock: a test that fails now and then is a defect.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")
