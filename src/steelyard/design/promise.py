"""The sigmas that a design promises: those of its recording once identification has prepared it.

Identification low-passes positions and decimates rows. Both need samples on either side, so the ends of a recording
give no rows, and near standstill a joint's own equations are bridged. What is lost at the ends is slow motion, the very
part that tells Coulomb from viscous friction: sigmas of friction are up to a third above those of all samples. So the
planned motion becomes a recording and goes through the preparation itself. Noise that was white before the decimator
gives its rows the covariance S, and ``M = W^T S^-1 W`` is what generalised least squares knows afterwards.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import ObservationError
from ..estimate import decimator_correlation, decimator_whitener
from ..motion import ApproachedTrajectory, Trajectory
from ..observe import Preparation, SettledPreparation, equations_of, merged_triangle, reduce_rows, row_source, settle
from ..recording import Recording, TorqueChannel
from .criteria import inverse_and_log_det
from .figures import Figures, Forecast
from .information import Unknowns

_CARRIED = "payload"


class PreparedInformation:
    """Tells what a motion's recording knows of the unknowns after identification's default preparation.

    Compiled once, with the exact sign of friction.
    """

    def __init__(self, chosen: Unknowns) -> None:
        """Take unknowns whose model has the exact sign."""
        self._unknowns = chosen
        self._equations = equations_of(chosen.model, chosen.base)

    def __call__(self, trajectory: Trajectory) -> np.ndarray:
        """Return the information M (c, c) of all runs of a motion recorded at the unknowns' rate.

        Raises:
            ObservationError: If the motion is too short for the preparation.
        """
        samples = trajectory.in_order(self._equations.joints).sample(self._unknowns.rate)
        # No equation is solved here: any torque will do.
        torque = np.zeros_like(samples.q)
        channels = (TorqueChannel("motor_torque", torque), TorqueChannel("joint_torque", torque))
        unloaded = Recording(samples.joints, samples.time, samples.q, torques=channels)
        settled = settle(Preparation(), [unloaded])
        runs = [replace(unloaded, payload=_CARRIED) if loaded else unloaded for loaded in self._unknowns.loads]
        return np.sum([self._of_run(run, settled) for run in runs], axis=0)

    def _of_run(self, run: Recording, settled: SettledPreparation) -> np.ndarray:
        chosen = self._unknowns
        source = row_source(run, self._equations, settled, "planned", keep_bytes=0)
        correlation = decimator_correlation(source)
        whitened = reduce_rows([source], lambda *_: decimator_whitener(correlation), blocks=1)
        noise = chosen.deviations * np.sqrt(settled.decimation_filter.noise_gain())
        weights = dict(zip(self._equations.kinds_joints, 1 / noise, strict=True))
        triangle, _ = merged_triangle(
            whitened.factors, chosen.columns, lambda factor: weights[factor.kind, factor.joint]
        )
        root = triangle[:, :-1]
        return root.T @ root


class Promise:
    """Tells the figures of one recording after another: those of the motion, and the sigmas that identification gives.

    Condition numbers and the determinant are the motion's own, at all its samples, as the search knows them. Sigmas are
    those of the prepared recording, its way in and out included; noise of positions adds what the Cramer-Rao bound says
    that it costs at all samples. A motion too short to be prepared has the sigmas of all samples.

    Attributes:
        unknowns: What is to be found.
        sigma: Gives the standard deviations (c,) that an information matrix (c, c) leaves, earlier one added.
    """

    def __init__(self, forecast: Forecast) -> None:
        """Take what tells the figures of the motion itself."""
        self.unknowns, self.sigma = forecast.unknowns, forecast.sigma
        self._forecast, self._prepared = forecast, PreparedInformation(forecast.unknowns)

    def __call__(self, recorded: Trajectory) -> Figures:
        """Return the figures of a motion recorded at the unknowns' rate, with its way in and out if it has one."""
        figures = self._forecast(core_of(recorded))
        known = self._known(recorded)
        if known is None:
            return figures
        sigma = self.sigma(known)
        return replace(figures, sigma=sigma, relative_sigma=self._forecast.relative(sigma), is_prepared=True)

    def information(self, recorded: Trajectory) -> np.ndarray:
        """Return the information (c, c) behind the sigmas, that of earlier recordings not included."""
        known = self._known(recorded)
        return self._forecast.matrices(core_of(recorded))[1] if known is None else known

    def _known(self, recorded: Trajectory) -> np.ndarray | None:
        """Return the information of the prepared recording; None if it cannot be prepared."""
        try:
            known = self._prepared(recorded)
        except ObservationError:
            return None
        cost = self._forecast.cost_of_positions(core_of(recorded))
        return known if cost is None else inverse_and_log_det(inverse_and_log_det(known)[0] + cost)[0]


def core_of(recorded: Trajectory) -> Trajectory:
    """Return a motion without its way in and out."""
    return recorded.core if isinstance(recorded, ApproachedTrajectory) else recorded
