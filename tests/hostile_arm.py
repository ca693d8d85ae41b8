"""An identified arm whose joints, links and log have names that try to get out of a page."""

from __future__ import annotations

from dataclasses import replace
from html import escape

import numpy as np

from simulated_experiments import scara

HOSTILE = '<img src=x onerror="window.hacked=1">'
SCRIPT = "</script><script>window.hacked=2</script>"
URDF = f"""<robot name="{escape(SCRIPT)}">
  <link name="base"/>
  <link name="{escape(HOSTILE)}"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.03"/></inertial></link>
  <link name="fore"><inertial><origin xyz="0.15 0 0"/><mass value="1"/>
    <inertia ixx="0.005" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  <joint name="{escape(HOSTILE)}" type="revolute"><parent link="base"/><child link="{escape(HOSTILE)}"/>
    <axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="9" effort="300"/></joint>
  <joint name="{escape(SCRIPT)}" type="revolute"><origin xyz="0.5 0 0"/><parent link="{escape(HOSTILE)}"/>
    <child link="fore"/><axis xyz="0 0 1"/><limit lower="-3" upper="3" velocity="9" effort="300"/></joint>
</robot>
"""


def jolted(seed: int):
    """Return a recording with hostile names, in whose torque a jolt stands out."""
    recording = scara(seed)
    channel = recording.torques[0]
    values = channel.values.copy()
    middle = values.shape[1] // 2
    values[:, middle : middle + 12] += 40 * np.abs(values).max(axis=1, keepdims=True) * (seed == 2)
    return replace(recording, joints=(HOSTILE, SCRIPT), torques=(replace(channel, values=values),), notes=())
