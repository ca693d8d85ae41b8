"""Relative errors on the real recordings, from raw files and predicted torques alone: numpy and scipy, nothing of ours.

The relative error is ``100 ||tau - tau_hat|| / ||tau||`` of joint-side torques, nothing subtracted, both through the
same zero-phase Butterworth filter of order 4. Files are read as the notes of their authors describe them, so that a
fault of the product's readers, filters or masks shows as a difference. Peers are judged by the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import signal

ORDER = 4
STILL_SPEED, STILL_MARGIN = 0.03, 0.2
"""The arm stands still where no joint is faster [rad/s], and this long before and after [s]."""

ENDS = 4.0
"""Samples nearer to an end of the predictions than this over the cut-off [s] depend on how a filter continues them."""

UR10E_GAINS = np.array([14.87, 13.26, 11.13, 10.62, 11.03, 11.47])
"""De Luca and co-authors' [N m/A]: a unit scale only."""

TX40_RATIOS = np.array([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
TX40_STOPS = 7.46
"""When the TX40 has come to rest [s]."""


@dataclass(frozen=True, eq=False)
class RawLog:
    """A recording on the joint side, as its files have it.

    Attributes:
        time: Stamps (N,) [s].
        q: Positions (n, N) [rad].
        qd: Recorded velocities (n, N) [rad/s]; None if there are none.
        torque: Joint-side torques (n, N) [N m].
    """

    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray | None
    torque: np.ndarray

    @property
    def rate(self) -> float:
        """Samples a second, from the median step [Hz]."""
        return 1 / float(np.median(np.diff(self.time)))

    def without_velocity(self) -> RawLog:
        """Return the log as if velocities had not been recorded."""
        return RawLog(self.time, self.q, None, self.torque)


def even(log: RawLog) -> RawLog:
    """Return a log at evenly spaced times, linear between its samples."""
    time = np.linspace(log.time[0], log.time[-1], 1 + round((log.time[-1] - log.time[0]) * log.rate))
    qd = None if log.qd is None else _at(log.time, log.qd, time)
    return RawLog(time, _at(log.time, log.q, time), qd, _at(log.time, log.torque, time))


def panda(root: Path, _: str = "") -> RawLog:
    """Read the Franka Panda's exciting trajectory: one value a line, seven make a sample."""
    folder = root / "franka_panda_gaz"
    columns = [np.loadtxt(folder / f"exciting_traj_{name}.txt") for name in ("positions", "velocity", "torques")]
    q, qd, torque = (values.reshape(-1, 7).T for values in columns)
    return RawLog(np.loadtxt(folder / "exciting_traj_time.txt"), q, qd, torque)


def lwr4(root: Path, number: str) -> RawLog:
    """Read a run of the KUKA LWR4+."""
    with np.load(root / "kuka_lwr4" / f"measurements_{number}.npz") as file:
        return RawLog(file["times"].ravel(), *(file[key].T for key in ("positions", "velocities", "torques")))


def tx40(root: Path, _: str = "") -> RawLog:
    """Read the Staubli TX40: motor positions and torques brought to the joint side, motor 6 turning with joint 5."""
    folder = root / "staubli_tx40"
    motor, torque = (
        np.loadtxt(folder / f"{name}.csv", delimiter=",", skiprows=1)[:, -6:].T
        for name in ("pos_read_data", "curr_data")
    )
    ratios = np.diag(TX40_RATIOS)
    ratios[5, 4] = 32.0
    q = np.linalg.solve(ratios, motor)
    q[1] -= np.pi / 2
    q[2] += np.pi / 2
    return RawLog(0.0002 * np.arange(q.shape[1]), q, None, ratios.T @ torque)


UR10E_ROWS: Mapping[str, tuple[int, int]] = {
    "20_02_10-30sec_12harm": (635, 3510),
    "20_02_12-40sec_12harm": (500, 4460),
    "20_02_12-50sec_12harm": (355, 5090),
    "20_02_19_14harm50sec": (195, 4966),
}
"""Rows that its authors use, counted from 1."""


def ur10e(root: Path, name: str) -> RawLog:
    """Read a run of the UR10e: motor currents times gains."""
    rows = np.loadtxt(root / "ur10e" / "identification" / f"ur-{name}.csv", delimiter=",")
    first, last = UR10E_ROWS.get(name, (1, len(rows)))
    rows = rows[first - 1 : last].T
    return RawLog(rows[0], rows[1:7], rows[7:13], UR10E_GAINS[:, None] * rows[13:19])


def airbot(root: Path, motion: str) -> RawLog:
    """Read a run of the AIRBOT Play without payload: 100 Hz, no stamps."""
    stem = root / "airbot_play" / f"{motion}_motion_identification"
    q, torque = (np.loadtxt(f"{stem}_{name}_real.csv", delimiter=",", skiprows=1).T for name in ("q", "tau"))
    return RawLog(0.01 * np.arange(q.shape[1]), q, None, torque)


READERS: dict[str, Callable[[Path, str], RawLog]] = {
    "franka_panda": panda,
    "kuka_lwr4": lwr4,
    "staubli_tx40": tx40,
    "ur10e": ur10e,
    "airbot_play": airbot,
}


@dataclass(frozen=True)
class Judged:
    """What a row of the table is judged by.

    Attributes:
        robot: Key of the reader.
        log: Which log of the set.
        cutoff: Of the evaluation filter [Hz].
        held_out: Share at the end that is judged; 1: the whole log, which was not fitted.
        until: End of the judged part [s]; what follows is standstill and is judged apart.
        masks_still: Whether samples are left out in which the arm stands still.
    """

    robot: str
    log: str
    cutoff: float
    held_out: float = 1.0
    until: float = np.inf
    masks_still: bool = False


@dataclass(frozen=True, eq=False)
class Score:
    """Relative errors [%] of predicted torques.

    Attributes:
        window: Over the judged window, without the ends that depend on how the filter continues the signals.
        joints: Of every joint over it (n,).
        all_rows: Over all unseen samples with a prediction: ends and standstill too.
        moving: Over the samples in which each joint moves, as the product counts them; NaN if nothing says which.
        coverage: Share of the unseen time before ``until`` that the window has.
    """

    window: float
    joints: np.ndarray
    all_rows: float
    moving: float
    coverage: float


def low_pass(values: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """Return signals (n, N) through the zero-phase Butterworth filter of order 4: its amplitude counts twice."""
    sections = signal.butter(ORDER, cutoff, fs=rate, output="sos")
    return signal.sosfiltfilt(sections, values, axis=-1)


def _runs(time: np.ndarray) -> list[np.ndarray]:
    """Return the places of each stretch of evenly spaced times."""
    steps = np.diff(time)
    return np.split(np.arange(len(time)), np.flatnonzero(steps > 1.5 * np.median(steps)) + 1)


def _filtered(values: np.ndarray, time: np.ndarray, cutoff: float) -> np.ndarray:
    """Return signals (n, N) filtered, each stretch on its own."""
    rate = 1 / float(np.median(np.diff(time)))
    return np.hstack([low_pass(values[:, run], rate, cutoff) for run in _runs(time)])


def _inner(time: np.ndarray, ends: float) -> np.ndarray:
    """Return which times (N,) are not within ``ends`` [s] of the first or last of their stretch."""
    return np.concatenate(
        [(time[run] >= time[run[0]] + ends) & (time[run] <= time[run[-1]] - ends) for run in _runs(time)]
    )


def relative_error(measured: np.ndarray, predicted: np.ndarray, mask: np.ndarray) -> float:
    """Return ``100 ||tau - tau_hat|| / ||tau||`` over samples; the mask is (N,) or (n, N)."""
    where = np.broadcast_to(mask, measured.shape)
    error, torque = (np.sum(values**2, where=where) for values in (measured - predicted, measured))
    return 100 * float(np.sqrt(error / torque)) if torque > 0 else np.nan


def standing_still(log: RawLog, time: np.ndarray, cutoff: float) -> np.ndarray:
    """Return whether the whole arm stands still at the times of a uniform grid (N,), margins included."""
    if log.qd is None:
        speed = np.gradient(_filtered(_at(log.time, log.q, time), time, cutoff), time, axis=1)
    else:
        speed = _filtered(_at(log.time, log.qd, time), time, cutoff)
    still = np.abs(speed).max(axis=0) < STILL_SPEED
    margin = round(STILL_MARGIN / float(np.median(np.diff(time))))
    return np.convolve(still, np.ones(2 * margin + 1), mode="same") > 0.5


def _at(stamps: np.ndarray, values: np.ndarray, time: np.ndarray) -> np.ndarray:
    return np.array([np.interp(time, stamps, row) for row in values])


def score(log: RawLog, row: Judged, time: np.ndarray, predicted: np.ndarray, moving: np.ndarray | None = None) -> Score:
    """Judge predicted torques.

    Args:
        log: The whole recording.
        row: Filter and window.
        time: Times of the predictions (N,) [s].
        predicted: Joint-side torques (n, N) [N m].
        moving: Whether each joint moves (n, N), as the product counts it.
    """
    measured = _filtered(_at(log.time, log.torque, time), time, row.cutoff)
    predicted = _filtered(predicted, time, row.cutoff)
    ends = ENDS / row.cutoff
    begins = log.time[round((1 - row.held_out) * len(log.time))] if row.held_out < 1 else log.time[0]
    unseen = time >= begins
    inner = unseen & _inner(time, ends)
    window = inner & (time < log.time[0] + row.until)
    if row.masks_still:
        window &= ~standing_still(log, time, row.cutoff)
    joints = [relative_error(measured[[k]], predicted[[k]], window) for k in range(len(measured))]
    # The product judges held-out motion as a log of its own, whose beginning its filters cannot predict either.
    own = inner & (time >= begins + ends + (time[0] - log.time[0]))
    of_log = log.time[(log.time >= begins) & (log.time < log.time[0] + row.until)]
    return Score(
        relative_error(measured, predicted, window),
        np.array(joints),
        relative_error(measured, predicted, unseen),
        np.nan if moving is None else relative_error(measured, predicted, own & moving),
        min(1.0, np.count_nonzero(window) * float(np.median(np.diff(time))) / float(of_log[-1] - of_log[0])),
    )
