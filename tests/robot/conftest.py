"""Small URDFs of our own, and an independent way to place bodies."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.robot import Robot, transform_from_placement

TWO_JOINT = b"""<?xml version="1.0"?>
<robot name="two_joint">
  <!-- a comment that must survive -->
  <link name="base"/>
  <link name="upper">
    <inertial>
      <origin xyz="0.1 0.02 -0.03" rpy="0.3 -0.2 0.5"/>
      <mass value="4"/>
      <inertia ixx="0.05" ixy="0.002" ixz="-0.001" iyy="0.06" iyz="0.003" izz="0.04"/>
    </inertial>
  </link>
  <link name="fore">
    <inertial>
      <mass value="2"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/>
    </inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <origin xyz="0 0 0.3" rpy="0 0 0"/>
    <parent link="base"/>
    <child link="upper"/>
    <axis xyz="0 0 1"/>
    <limit lower="-2" upper="2.5" velocity="3" effort="50"/>
    <dynamics damping="1.5" friction="0"/>
  </joint>
  <joint name="elbow" type="revolute">
    <origin xyz="0.4 0 0" rpy="-1.5708 0 0"/>
    <parent link="upper"/>
    <child link="fore"/>
    <axis xyz="0 0 2"/>
    <limit lower="-1" upper="1" velocity="0" effort="0"/>
    <dynamics damping="0.4" friction="0.7"/>
  </joint>
  <gazebo reference="fore"><material>Gazebo/Blue</material></gazebo>
</robot>
"""

BRANCHED = b"""<robot name="branched">
  <link name="world"/>
  <link name="rail"/>
  <link name="carriage">
    <inertial><origin xyz="0 0 0.1"/><mass value="8"/>
      <inertia ixx="0.2" ixy="0" ixz="0" iyy="0.3" iyz="0" izz="0.25"/></inertial>
  </link>
  <link name="sensor">
    <inertial><origin xyz="0.01 0.02 0.03" rpy="0.4 0.1 -0.7"/><mass value="0.5"/>
      <inertia ixx="0.001" ixy="0.0001" ixz="0" iyy="0.002" iyz="0" izz="0.0015"/></inertial>
  </link>
  <link name="left">
    <inertial><origin xyz="0.2 0 0" rpy="1.1 0.2 0.3"/><mass value="2"/>
      <inertia ixx="0.01" ixy="0.001" ixz="0.002" iyy="0.03" iyz="-0.001" izz="0.03"/></inertial>
  </link>
  <link name="left_tool">
    <inertial><origin xyz="0 0.05 0"/><mass value="0.3"/>
      <inertia ixx="0.0004" ixy="0" ixz="0" iyy="0.0003" iyz="0" izz="0.0005"/></inertial>
  </link>
  <link name="left_tip"/>
  <link name="right">
    <inertial><mass value="1"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
  </link>
  <joint name="mount" type="fixed"><origin xyz="0 0 1" rpy="0.2 0 0"/><parent link="world"/><child link="rail"/></joint>
  <joint name="right_joint" type="revolute">
    <origin xyz="0 -0.2 0" rpy="0 0.3 0"/><parent link="carriage"/><child link="right"/><axis xyz="0 -1 0"/>
    <limit lower="-1" upper="1" velocity="1" effort="5"/><mimic joint="left_joint" multiplier="-2" offset="0.2"/>
  </joint>
  <joint name="slide" type="prismatic">
    <origin xyz="0.1 0 0" rpy="0 0.7 0"/><parent link="rail"/><child link="carriage"/><axis xyz="0.6 0 0.8"/>
    <limit lower="0" upper="0.5" velocity="0.4" effort="200"/>
  </joint>
  <joint name="left_joint" type="continuous">
    <origin xyz="0 0.2 0" rpy="0.1 0.2 0.3"/><parent link="carriage"/><child link="left"/><axis xyz="1 2 3"/>
  </joint>
  <joint name="sensor_joint" type="fixed">
    <origin xyz="0.3 0 0.1" rpy="0 0 1.0"/><parent link="carriage"/><child link="sensor"/>
  </joint>
  <joint name="tool_joint" type="fixed">
    <origin xyz="0.4 0 0" rpy="0.5 0 0"/><parent link="left"/><child link="left_tool"/>
  </joint>
  <joint name="tip_joint" type="fixed"><origin xyz="0.1 0 0"/><parent link="left_tool"/><child link="left_tip"/></joint>
</robot>
"""

TWO_JOINT_TABLE = b"""
[robot]
name = "two_joint"

[[joint]]
name = "shoulder"
link = "upper"
alpha_deg = 0
d = 0
theta_deg = 0
r = 0.3

[[joint]]
name = "elbow"
link = "fore"
alpha_deg = -90
d = 0.4
theta_deg = 0
r = 0
mass = 2
centre = [0, 0, 0]
inertia_at_centre = [0.02, 0, 0, 0.02, 0, 0.01]
"""


@pytest.fixture
def two_joint() -> bytes:
    return TWO_JOINT


@pytest.fixture
def branched() -> bytes:
    return BRANCHED


@pytest.fixture
def two_joint_table() -> bytes:
    return TWO_JOINT_TABLE


class Poses:
    """Poses of links by plain 4x4 products, independent of the symbolic kinematics."""

    @staticmethod
    def elementary(kind: str, axis: str, value: float) -> np.ndarray:
        transform = np.eye(4)
        k = "xyz".index(axis)
        if kind == "translate":
            transform[k, 3] = value
            return transform
        a, b = (k + 1) % 3, (k + 2) % 3
        c, s = np.cos(value), np.sin(value)
        transform[a, a], transform[a, b], transform[b, a], transform[b, b] = c, -s, s, c
        return transform

    @staticmethod
    def of_link(robot: Robot, link: str, q: np.ndarray) -> np.ndarray:
        """Return the 4x4 pose of a link in the base for the positions of the moving joints."""

        def matrix(placement) -> np.ndarray:
            transform = np.eye(4)
            transform[:3, :3], transform[:3, 3] = transform_from_placement(placement)
            return transform

        frame = robot.frame(link)
        pose, number = matrix(frame.placement), frame.body
        while number:
            body = robot.bodies[number - 1]
            pose = matrix((*body.placement, body.joint.motion(float(q[number - 1])))) @ pose
            number = body.parent
        return pose


@pytest.fixture
def poses() -> Poses:
    return Poses()
