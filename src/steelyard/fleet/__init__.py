"""Fleets: many units of an arm and their logs over time; what they have in common, and which one is another."""

from .changes import Change as Change
from .changes import ControlChart as ControlChart
from .changes import Slope as Slope
from .hierarchy import Hierarchy as Hierarchy
from .hierarchy import LogInformation as LogInformation
from .hierarchy import fit_hierarchy as fit_hierarchy
from .log_results import DeclaredModel as DeclaredModel
from .log_results import LogResult as LogResult
from .log_results import result_of as result_of
from .manifest import FleetLog as FleetLog
from .manifest import Manifest as Manifest
from .manifest import read_manifest as read_manifest
from .pipeline import FleetResult as FleetResult
from .pipeline import identify_fleet as identify_fleet
from .robot_fleet import FleetFinding as FleetFinding
from .robot_fleet import RobotFleet as RobotFleet
