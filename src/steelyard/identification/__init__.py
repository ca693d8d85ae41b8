"""Identification: recordings to parameters, with a verdict; payloads of identified arms; runs on disk."""

from typing import TYPE_CHECKING

from ..lazy import lazy_names
from .findings import Diagnosed as Diagnosed
from .findings import LogFinding as LogFinding
from .fitting import ArmFit as ArmFit
from .fitting import Fitted as Fitted
from .fitting import fit_arm as fit_arm
from .fitting import fit_arms as fit_arms
from .nonlinear import NonlinearParameter as NonlinearParameter
from .payload_body import PayloadBody as PayloadBody
from .payload_body import payload_body as payload_body
from .payload_body import payload_to_json as payload_to_json
from .pipeline import identify as identify
from .result import ConditionNumbers as ConditionNumbers
from .result import Identification as Identification
from .result import Trained as Trained
from .run_files import RunLike as RunLike
from .run_files import SavedRun as SavedRun
from .run_files import fill_run as fill_run
from .run_files import load_run as load_run
from .run_files import read_identified as read_identified
from .run_files import read_run as read_run
from .run_files import robot_of_run as robot_of_run
from .run_files import save_run as save_run
from .run_files import write_run as write_run
from .settings import FACTOR_METHODS as FACTOR_METHODS
from .settings import METHODS as METHODS
from .settings import SCHEMA as SCHEMA
from .settings import Settings as Settings
from .settings import settings_from_table as settings_from_table
from .settings import settings_to_table as settings_to_table
from .settings import with_options as with_options

if TYPE_CHECKING:
    from .corrections import corrected_configuration as corrected_configuration
    from .diagnosis import Diagnosis as Diagnosis
    from .diagnosis import diagnose as diagnose
    from .gains import identify_gains as identify_gains
    from .gains_result import GainsFound as GainsFound
    from .old_model import ModelCheck as ModelCheck
    from .old_model import check_model as check_model
    from .payload import PayloadFound as PayloadFound
    from .payload import SavedPayload as SavedPayload
    from .payload import identify_payload as identify_payload
    from .payload import read_payload as read_payload
    from .prediction import PredictedBlock as PredictedBlock
    from .prediction import TorquePrediction as TorquePrediction
    from .prediction import predict as predict
    from .reference import FileReference as FileReference
    from .reference import TorqueDifference as TorqueDifference
    from .reference import file_reference as file_reference
    from .reference import torque_differences as torque_differences
    from .wrench import WrenchPayload as WrenchPayload
    from .wrench import payload_from_wrench as payload_from_wrench

# Not every command needs these.
_LATER = {
    "corrections": ["corrected_configuration"],
    "diagnosis": ["Diagnosis", "diagnose"],
    "old_model": ["ModelCheck", "check_model"],
    "gains": ["identify_gains"],
    "gains_result": ["GainsFound"],
    "payload": ["PayloadFound", "SavedPayload", "identify_payload", "read_payload"],
    "prediction": ["PredictedBlock", "TorquePrediction", "predict"],
    "wrench": ["WrenchPayload", "payload_from_wrench"],
    "reference": ["FileReference", "TorqueDifference", "file_reference", "torque_differences"],
}
__getattr__, __dir__ = lazy_names(__name__, _LATER)
