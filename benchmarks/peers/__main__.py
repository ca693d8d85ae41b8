"""What the peers need for their answers: ``make bench-peers`` or ``python -m benchmarks.peers [SECONDS]``."""

from __future__ import annotations

import os
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Before any other array of JAX: it takes one thread, too.
from benchmarks.peers import jax_logdet
from benchmarks.peers.constrained_task import excess_between, task_for
from benchmarks.peers.information import question, random_coefficients
from benchmarks.peers.pinocchio_logdet import PinocchioLogDet
from benchmarks.peers.slsqp_design import design
from benchmarks.timing import round_robin


def gradients() -> None:
    """Print CPU times of value and gradient of log det: 7 joints, 5 harmonics, 1000 samples."""
    requested = question("kuka_lwr4")
    X = random_coefficients(requested)
    jax_logdet.check(requested, X)
    peers = {
        "JAX reverse mode": jax_logdet.JaxLogDet(requested).value_and_gradient,
        "Pinocchio's loop, forward differences": PinocchioLogDet(requested).value_and_gradient,
    }
    times = round_robin({name: lambda run=run: run(X) for name, run in peers.items()}, rounds=5)
    print(
        f"value and gradient of log det, {len(requested.base.names)} columns, {X.size} coefficients, CPU time, 5 rounds"
    )
    for name, timing in times.items():
        least, most = (1e3 * end(timing.seconds) for end in (min, max))
        print(f"  {name:38s} {1e3 * timing.median:.2f} ms (rounds: {least:.2f} to {most:.2f})")


def designs(seconds: float) -> None:
    """Print what SLSQP reaches for a 6-joint arm with 100 samples."""
    task = task_for("ur10e", 100)
    reached = design(task, seconds, clock=time.process_time)
    excess = excess_between(task, reached.X, 10.0)
    print(
        f"SLSQP, ur10e, 100 samples, {reached.seconds:.1f} s CPU, {reached.starts} starts, feasible {reached.feasible}"
    )
    print(f"  log det {reached.value:.3f}; limits broken between the samples by up to {100 * excess:.2f} %")


if __name__ == "__main__":
    gradients()
    designs(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
