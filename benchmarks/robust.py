"""What robust weights cost in clean torques and gain in spoilt ones: many seeds of noise on one motion of an arm.

Spoilt torques have, in 5 % of the samples of every joint, a spike of 20 standard deviations, always to the same side.
The truth is the estimate without any noise, so that filters and discretisation do not count. Runs only when named:
``python -m benchmarks robust`` counts 400 seeds, ``python -m benchmarks.robust --seeds 50`` fewer.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.coverage_arms import p1_moves
from steelyard.estimate import Estimate
from steelyard.identification import Settings
from steelyard.identification.fitting import fit_arm
from steelyard.observe import Preparation
from steelyard.robot import load_robot
from steelyard.simulation import Experiment, recording_of, simulate

SEEDS = 400
NOISE = np.array([[2.0], [0.1]])
SPOILT, SPIKE = 0.05, 20.0
EFFECTS = ("inertia", "Ia", "Fvm", "Fcm", "offm")
PREPARATION = Preparation(mode="none", decimation=1)


@dataclass(frozen=True)
class Counted:
    """What some weights gave over all seeds.

    Attributes:
        offsets: Part of 95 % intervals of constant torques that hold the truth [%].
        others: The same of all other parameters [%].
        error: Root mean square error over that of least squares on clean torques, median over the parameters.
        sigma: The same of the reported sigma.
    """

    offsets: float
    others: float
    error: float
    sigma: float


class SpoiltTorques:
    """One motion of P1's arm, to which noise and spikes of any seed can be added."""

    def __init__(self) -> None:
        self._robot = load_robot("scara_2r")
        experiment = Experiment(record_rate=50)
        self._clean = recording_of(simulate(self._robot, p1_moves(self._robot, 0), experiment))
        settings = Settings(method="wls", effects=EFFECTS, preparation=PREPARATION)
        self._exact = fit_arm(self._robot, self._clean, settings)
        self.columns = self._exact.fit.estimate.columns
        self.true = self._exact.fit.estimate.values

    def estimate(self, seed: int, spoilt: bool, method: str, robust: str | None) -> Estimate:
        """Return the estimate of one seed."""
        rng, channel = np.random.default_rng(seed), self._clean.torques[0]
        values = channel.values + NOISE * rng.standard_normal(channel.values.shape)
        if spoilt:
            values = values + SPIKE * NOISE * (rng.random(values.shape) < SPOILT)
        recording = replace(self._clean, torques=(replace(channel, values=values),), sources=())
        settings = Settings(method=method, effects=EFFECTS, preparation=PREPARATION, robust=robust)
        exact = self._exact
        found = fit_arm(self._robot, recording, settings, equations=exact.equations, resolved=exact.resolved)
        return found.fit.estimate


def counted(torques: SpoiltTorques, seeds: int, method: str) -> dict[str, Counted]:
    """Return what every weighting gives on clean and on spoilt torques, by name."""
    offsets, usual = np.array([name.startswith("off") for name in torques.columns]), None
    found: dict[str, Counted] = {}
    for spoilt in (False, True):
        for robust in (None, "huber", "tukey"):
            estimates = [torques.estimate(seed, spoilt, method, robust) for seed in range(seeds)]
            error = np.array([one.values - torques.true for one in estimates])
            covered = np.abs(error) <= [one.half_width() for one in estimates]
            rms, sigma = np.sqrt(np.mean(error**2, axis=0)), np.mean([one.sigma for one in estimates], axis=0)
            usual = rms if usual is None else usual
            name = f"{'spoilt' if spoilt else 'clean'}, {robust or 'least squares'}"
            found[name] = Counted(
                100 * covered[:, offsets].mean(), 100 * covered[:, ~offsets].mean(),
                float(np.median(rms / usual)), float(np.median(sigma / usual)),
            )  # fmt: skip
    return found


def run(seeds: int = SEEDS) -> None:
    """Print the table."""
    torques = SpoiltTorques()
    print(f"{seeds} seeds, {len(torques.columns)} parameters of scara_2r; error and sigma over clean least squares")
    print(f"{'torques, weights':24} {'method':6} {'offsets %':>9} {'others %':>9} {'error':>7} {'sigma':>7}")
    for method in ("wls", "gls"):
        for name, one in counted(torques, seeds, method).items():
            print(f"{name:24} {method:6} {one.offsets:9.1f} {one.others:9.1f} {one.error:7.3f} {one.sigma:7.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    run(parser.parse_args().seeds)
