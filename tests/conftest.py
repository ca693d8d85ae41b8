"""Settings of the whole test run."""

from __future__ import annotations

import os

# Test processes share the cores already: threads inside linear algebra would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
