"""What is simulated and what is fitted, as plain text: it can be sent to another process, hashed and kept."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..errors import ConfigError, require_type
from ..motion import Trajectory, load_trajectory
from ..motion.document import table_from_trajectory
from ..robot import load_robot
from ..run import hashes_of


@dataclass(frozen=True)
class Arrangement:
    """An arm, a motion, an experiment and the choices of the fit. Make one with :func:`arrangement`.

    Attributes:
        robot: Catalogue name or file.
        robot_hash: SHA-256 of the file; empty for an arm of the catalogue.
        motion: The motion's table as JSON.
        simulate: Settings of the experiment as JSON, keys of a ``[simulate]`` table.
        identify: Settings of the fit as JSON, keys of an ``[identify]`` table.
    """

    robot: str
    robot_hash: str
    motion: str
    simulate: str
    identify: str

    @property
    def fingerprint(self) -> dict[str, str]:
        """Everything that decides a run but its case and its seed, by what it is."""
        return {
            "robot": self.robot_hash or self.robot,
            "motion": hashlib.sha256(self.motion.encode()).hexdigest(),
            "simulate": self.simulate,
            "identify": self.identify,
            "steelyard": __version__,
        }


def arrangement(
    robot: str | os.PathLike[str],
    motion: Trajectory | str | os.PathLike[str],
    simulate: Mapping[str, Any],
    identify: Mapping[str, Any],
) -> Arrangement:
    """Return what is simulated and fitted.

    Args:
        robot: Catalogue name or file of the arm.
        motion: The motion it is told to follow, or the path of its file.
        simulate: Settings of the experiment, as ``experiment_from_settings`` takes them.
        identify: Settings of the fit, as ``settings_from_table`` takes them; the method is the study's.

    Raises:
        ConfigError: If a setting is neither number, text, list nor table.
    """
    # Every process of a study loads the arm by its name.
    require_type(robot, (str, os.PathLike), "robot", "a catalogue name or the path of a file", ConfigError)
    name = os.fspath(robot)
    motion = load_trajectory(motion, [body.joint.name for body in load_robot(name).actuated])
    # The number of threads decides no result; the method is the case's.
    fitted = {key: value for key, value in identify.items() if key not in ("threads", "method")}
    table = {**table_from_trajectory(motion), "joints": list(motion.joints)}
    digest = next(iter(hashes_of(Path(name)).values()), "")
    return Arrangement(name, digest, _text(table), _text(simulate), _text(fitted))


def _text(table: Mapping[str, Any]) -> str:
    return json.dumps(dict(table), sort_keys=True, default=_listed)


def _listed(value: object) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise ConfigError(f"setting {value!r}: allowed are numbers, texts, lists and tables of them")
