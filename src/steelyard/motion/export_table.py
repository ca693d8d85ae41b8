"""Motions as tables of samples: CSV and NPZ."""

from __future__ import annotations

from typing import IO

import numpy as np

from .export_format import ExportedMotion, ExportFormat, any_motion

LARGEST_COUNT = 2_000_000
"""Over half an hour at 1 kHz; more does not fit a controller's memory either."""


def write_csv(motion: ExportedMotion, file: IO[bytes]) -> None:
    """Write columns ``time``, ``q_<joint>`` ..., ``qd_<joint>`` ..., ``qdd_<joint>`` ...; numbers read back exactly."""
    import polars as pl  # imported when used: most commands write no table

    samples = motion.samples()
    columns = {"time": samples.time}
    for name in ("q", "qd", "qdd"):
        rows = zip(samples.joints, getattr(samples, name), strict=True)
        columns.update({f"{name}_{joint}": values for joint, values in rows})
    pl.DataFrame(columns).write_csv(file)


def write_npz(motion: ExportedMotion, file: IO[bytes]) -> None:
    """Write arrays ``time`` (N,), ``q``, ``qd``, ``qdd`` (n, N), ``joints`` (n,) and ``units`` of positions (n,)."""
    samples = motion.samples()
    joints, units = np.array(samples.joints), np.array(motion.units)
    np.savez(file, time=samples.time, q=samples.q, qd=samples.qd, qdd=samples.qdd, joints=joints, units=units)


CSV = ExportFormat(".csv", 1000.0, LARGEST_COUNT, any_motion, write_csv)
NPZ = ExportFormat(".npz", 1000.0, LARGEST_COUNT, any_motion, write_npz)
