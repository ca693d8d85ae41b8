"""Identification and calibration of robot arms from recorded motion.

Public names are loaded when first used, so that ``steelyard --help`` does not wait for them.
"""

from typing import TYPE_CHECKING

from .errors import SteelyardError as SteelyardError
from .lazy import lazy_names

if TYPE_CHECKING:
    from .calibration import CalibrationSettings as CalibrationSettings
    from .calibration import calibrate as calibrate
    from .excitation import DesignSettings as DesignSettings
    from .excitation import design as design
    from .export import export_model as export_model
    from .fleet import identify_fleet as identify_fleet
    from .fleet import read_manifest as read_manifest
    from .identification import Settings as Settings
    from .identification import check_model as check_model
    from .identification import diagnose as diagnose
    from .identification import identify as identify
    from .identification import identify_gains as identify_gains
    from .identification import identify_payload as identify_payload
    from .identification import load_run as load_run
    from .identification import predict as predict
    from .identification import save_run as save_run
    from .kernel import compile_batch as compile_batch
    from .kernel import compile_loop as compile_loop
    from .model import base_parameters as base_parameters
    from .model import build_model as build_model
    from .model import data_rank as data_rank
    from .model import identifiability as identifiability
    from .model import random_motion as random_motion
    from .model import summarise_model as summarise_model
    from .motion import fourier as fourier
    from .motion import quintic as quintic
    from .motion import read_trajectory as read_trajectory
    from .motion import trapezoidal as trapezoidal
    from .motion import write_trajectory as write_trajectory
    from .observe import Preparation as Preparation
    from .recording import Recording as Recording
    from .recording import guess_setup as guess_setup
    from .recording import read_recording as read_recording
    from .recording import write_recording as write_recording
    from .robot import Robot as Robot
    from .robot import catalogue_names as catalogue_names
    from .robot import load_robot as load_robot
    from .robot import read_mjcf as read_mjcf
    from .robot import read_table as read_table
    from .robot import read_urdf as read_urdf
    from .simulation import Experiment as Experiment
    from .simulation import Noise as Noise
    from .simulation import recording_of as recording_of
    from .simulation import simulate as simulate
    from .study import StudySettings as StudySettings
    from .study import montecarlo as montecarlo
    from .study import study_configuration as study_configuration

__version__ = "0.1.0"

_ROOMS = {
    "calibration": ("CalibrationSettings", "calibrate"),
    "excitation": ("DesignSettings", "design"),
    "export": ("export_model",),
    "fleet": ("identify_fleet", "read_manifest"),
    "identification": (
        "Settings",
        "check_model",
        "diagnose",
        "identify",
        "identify_gains",
        "identify_payload",
        "load_run",
        "predict",
        "save_run",
    ),
    "kernel": ("compile_batch", "compile_loop"),
    "model": ("base_parameters", "build_model", "data_rank", "identifiability", "random_motion", "summarise_model"),
    "motion": ("fourier", "quintic", "read_trajectory", "trapezoidal", "write_trajectory"),
    "observe": ("Preparation",),
    "recording": ("Recording", "guess_setup", "read_recording", "write_recording"),
    "robot": ("Robot", "catalogue_names", "load_robot", "read_mjcf", "read_table", "read_urdf"),
    "simulation": ("Experiment", "Noise", "recording_of", "simulate"),
    "study": ("StudySettings", "montecarlo", "study_configuration"),
}

__getattr__, __dir__ = lazy_names(__name__, _ROOMS)
