"""Set-up of a calibration: measured link, base, tool, markers, loads, springs, and which of them are unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, get_args

from ...errors import CalibrationError, nearest_match
from ...excitation.limits.space_limits import last_link
from ...robot import AnyRobot, Body, Robot, load_robot
from ...robot.placement import Vector3

Between = Literal["nearest", "linear"]
OwnWeight = Literal["none", "model", "unknown"]
Angles = Literal["commanded", "measured"]
Kind = Literal["position", "pose", "distance", "difference"]
KINDS: tuple[Kind, ...] = get_args(Kind)

LENGTHS = MappingProxyType({"m": 1.0, "mm": 1e-3, "um": 1e-6, "in": 0.0254})
"""Units of positions, in metres."""
TURNS = MappingProxyType({"rad": 1.0, "deg": 0.017453292519943295})
"""Units of angles, in radians."""


@dataclass(frozen=True)
class Load:
    """A load on the arm while it is measured.

    Attributes:
        name: Name by which rows of the measurements call it.
        force: Force (3,) [N] in robot base axes; a mass m is ``m * gravity``.
        moment: Moment (3,) [N m] in robot base axes, about ``point``.
        point: Where the force acts (3,) [m], in the measured link's frame.
    """

    name: str
    force: Vector3
    moment: Vector3
    point: Vector3


@dataclass(frozen=True)
class MarkerSetup:
    """A point on the measured link whose position is measured.

    Attributes:
        name: Name of the marker.
        position: Its position in the measured link's frame (3,) [m], or None where nothing is known of it.
        known: Whether the position is exact: then it is no unknown.

    Example:
        >>> from steelyard.calibration import MarkerSetup
        >>> MarkerSetup("nest_1", (0.3, 0.0, 0.0)).known
        False
    """

    name: str
    position: Vector3 | None = None
    known: bool = False


@dataclass(frozen=True)
class FrameSetup:
    """Where the base stands in the measurement frame, or the tool in the measured link's frame.

    Attributes:
        xyz: Position (3,) [m], or None where nothing is known of it.
        rpy: Roll, pitch and yaw (3,) [rad] as in a URDF, or None.
        known: Whether both are exact: then the frame holds no unknown.
    """

    xyz: Vector3 | None = None
    rpy: Vector3 | None = None
    known: bool = False


@dataclass(frozen=True)
class ElasticSetup:
    """Which springs are unknown, and what loads them besides the applied loads.

    Attributes:
        joints: Joints with a spring about (or along) their own axis.
        lateral: Joints with springs about the two other axes too.
        nodes: Positions [rad or m], by joint, at which a compliance has values of its own (P3.5).
        between: What a compliance is between nodes: that of the nearest one, or linear.
        own_weight: Weight of the links: left out, from the robot's file, or as unknown first moments and masses.
        known: Joints that are not to be fitted and give way as the robot's file says; filled in where something loads
            the arm.
    """

    joints: tuple[str, ...] = ()
    lateral: tuple[str, ...] = ()
    nodes: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: MappingProxyType({}))
    between: Between = "nearest"
    own_weight: OwnWeight = "none"
    known: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrackerNoise:
    """Noise of an instrument that measures a distance and two angles from where it stands.

    Attributes:
        distance: Standard deviation of the distance [m].
        angle: Standard deviation of each angle [rad].
        distance_per_metre: What is added to that of the distance for each metre [m/m].
        station: Where the instrument stands, in the measurement frame (3,) [m].
    """

    distance: float
    angle: float
    distance_per_metre: float = 0.0
    station: Vector3 = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Columns:
    """How the numbers of a file become measurements.

    Attributes:
        position: Unit of positions: ``m``, ``mm``, ``um`` or ``in``.
        angle: Unit of angles: ``rad`` or ``deg``.
        slide: Unit of joints that slide.
        markers: In a wide file: columns of x, y and z by marker; an empty name is a coordinate that is not measured.
        tool: In a wide file: columns of a measured pose, three of position and four (quaternion) or three (roll,
            pitch, yaw) of orientation.
        names: Column names of a file without a header.
        renamed: Column names of the file by the role they have (``pose``, ``repeat``, ``load``, ``x``, ``qw`` ...).
        load: Load of rows that name none; empty for no load.
        kind: What rows measure that do not say it; empty: position, pose or distance by their columns.
    """

    position: str = "m"
    angle: str = "rad"
    slide: str = "m"
    markers: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    tool: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    load: str = ""
    kind: str = ""


@dataclass(frozen=True)
class CalibrationSetup:
    """How an arm was measured and which unknowns a calibration has. Set-ups in files: ``read_setup``.

    Attributes:
        link: The measured link: markers, tool and load points are in its frame.
        base: The robot's base in the measurement frame.
        tool: The tool in the measured link's frame, where orientation is measured.
        markers: Markers; once measurements are read (``completed_setup``) in the order of ``Measurements.markers``.
        loads: Loads, numbered as in ``Measurements.load``.
        elastic: Springs.
        geometry: Joints whose placement errors are unknown, or ``all``, or ``none``.
        joint_map: A joint as a linear function of columns of the file, a constant under the key ``""``; joints that
            are not in it have a column of their own name. Columns count in SI units. Measurements have it applied.
        sigma: Noise of the instrument in x, y and z (3,) [m], if declared.
        tracker: Noise of the instrument by distance and angle, if declared so.
        angles: Whether joint positions are those commanded or those measured by the encoders.
        columns: Units and columns of the file of measurements.
        sigma_rotation: Noise of measured orientations about each axis [rad], if declared.

    Example:
        >>> from steelyard.calibration import CalibrationSetup, MarkerSetup
        >>> CalibrationSetup("link_2", markers=(MarkerSetup("nest_1", (0.3, 0.0, 0.0)),)).geometry
        'all'
    """

    link: str
    base: FrameSetup = FrameSetup()
    tool: FrameSetup = FrameSetup()
    markers: tuple[MarkerSetup, ...] = ()
    loads: tuple[Load, ...] = ()
    elastic: ElasticSetup = field(default_factory=ElasticSetup)
    geometry: tuple[str, ...] | Literal["all", "none"] = "all"
    joint_map: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: MappingProxyType({}))
    sigma: tuple[float, ...] | None = None
    tracker: TrackerNoise | None = None
    angles: Angles = "commanded"
    columns: Columns = field(default_factory=Columns)
    sigma_rotation: float | None = None


def default_setup(robot: AnyRobot) -> CalibrationSetup:
    """Return the set-up that holds where none is given.

    The last link is measured, base and markers are unknown, all joints may be misplaced, nothing bends; metres and
    radians.
    """
    return CalibrationSetup(link=last_link(load_robot(robot)))


def moving_chain(robot: Robot, link: str) -> tuple[Body, ...]:
    """Return the bodies between the base and a link, from the base on."""
    chain, number = [], robot.frame(link).body
    while number:
        chain.append(robot.bodies[number - 1])
        number = chain[-1].parent
    return tuple(reversed(chain))


def completed_setup(setup: CalibrationSetup, markers: Sequence[str]) -> CalibrationSetup:
    """Return the set-up with its markers in the order of the measurements; new names become unknown markers.

    Args:
        setup: The set-up.
        markers: Names of the markers that were measured. A set-up that names markers must name all of these.
    """
    declared = {marker.name: marker for marker in setup.markers}
    for name in markers:
        if declared and name not in declared:
            raise CalibrationError(
                f"the measurements have a marker '{name}'; markers of the set-up: {', '.join(declared)}"
                f"{nearest_match(name, declared)}"
            )
    return replace(setup, markers=tuple(declared.get(name, MarkerSetup(name)) for name in markers))


def load_named(setup: CalibrationSetup, name: str | None) -> Load | None:
    """Return the load of that name; None for no name.

    Raises:
        CalibrationError: If the set-up has no such load.
    """
    loads = {load.name: load for load in setup.loads}
    if name is not None and name not in loads:
        raise CalibrationError(
            f"load: got '{name}', the set-up has {', '.join(loads) or 'none'}{nearest_match(name, loads)}; write it "
            f"under [loads.{name}]"
        )
    return None if name is None else loads[name]
