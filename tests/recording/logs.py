"""A small arm of two joints and logs of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from steelyard.robot import Robot, read_urdf

ARM = """<robot name="two"><link name="base"/><link name="upper"/><link name="fore"/>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
  <limit lower="-2.5" upper="2.5" velocity="3" effort="50"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><axis xyz="0 1 0"/>
  <limit lower="-2.0" upper="2.0" velocity="3" effort="50"/></joint></robot>"""


def arm() -> Robot:
    return read_urdf(ARM.encode())


class Motion:
    """A smooth motion of the arm sampled at 200 Hz: time (N,), q, qd, tau (2, N)."""

    def __init__(self, samples: int = 2000, rate: float = 200.0) -> None:
        self.time = np.arange(samples) / rate
        phase = np.array([[1.3], [2.1]])
        self.q = np.array([[1.5], [1.0]]) * np.sin(phase * self.time)
        self.qd = np.array([[1.5], [1.0]]) * phase * np.cos(phase * self.time)
        self.tau = 5 * np.cos(3 * phase * self.time)

    def table(self) -> np.ndarray:
        """Return t, q, qd, tau as columns (N, 7)."""
        return np.column_stack([self.time, self.q.T, self.qd.T, self.tau.T])

    def arrays(self) -> dict[str, np.ndarray]:
        return {"time": self.time, "q": self.q, "qd": self.qd, "joint_torque": self.tau}


HEADER = "time,q[shoulder],q[elbow],qd[shoulder],qd[elbow],joint_torque[shoulder],joint_torque[elbow]"


def write_csv(path: Path, table: np.ndarray, header: str | None = HEADER, separator: str = ",") -> Path:
    lines = [] if header is None else [header]
    lines += [separator.join(repr(float(value)) for value in row) for row in table]
    path.write_text("\n".join(lines) + "\n")
    return path


def known(values: np.ndarray | None) -> np.ndarray:
    """Return an array that must be there."""
    assert values is not None
    return values


def kinds(findings, *severities: str) -> set[str]:
    return {finding.kind for finding in findings if not severities or finding.severity in severities}


def one(findings, kind: str, joint: str = ""):
    """Return the only finding of a kind (and joint)."""
    found = [finding for finding in findings if finding.kind == kind and joint in ("", finding.joint)]
    assert len(found) == 1, [finding.text for finding in findings]
    return found[0]
