"""Run the benchmarks named on the command line, or all that do not take long."""

from __future__ import annotations

import importlib
import os
import sys

NAMES = (
    "regressor", "compile_time", "scaling", "simulation", "decimation", "text_log", "log_length", "reduction",
    "design_gradient", "calibration_speed", "kalman_speed", "montecarlo_speed", "report_time",
)  # fmt: skip

LONG = (
    "bags",
    "coverage",
    "design_full",
    "calibration_coverage",
    "calibration_real",
    "estimators",
    "filters_real",
    "fleet",
    "gains",
    "essential",
    "generated_c",
    "init_real",
    "nonlinear",
    "real",
    "robust",
    "selection",
)
"""Run only when named: they take long, or need the real recordings."""


def main() -> int:
    """Run the chosen benchmarks in this process, linear algebra on one thread."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    chosen = sys.argv[1:] or NAMES
    unknown = [name for name in chosen if name not in NAMES + LONG]
    if unknown:
        print(f"unknown benchmark '{unknown[0]}'; allowed: {', '.join(NAMES + LONG)}", file=sys.stderr)
        return 1
    for name in chosen:
        print(f"== {name}")
        importlib.import_module(f"benchmarks.{name}").run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
