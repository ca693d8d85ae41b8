"""Which effects are unknown and which torques are measured: named parameters and base parameters."""

from .base import BaseParameter as BaseParameter
from .base import BaseParameters as BaseParameters
from .base import base_parameters as base_parameters
from .excitation import DataRank as DataRank
from .excitation import data_rank as data_rank
from .identifiability import Identifiability as Identifiability
from .identifiability import identifiability as identifiability
from .model import MEASURED as MEASURED
from .model import PAYLOADS as PAYLOADS
from .model import Model as Model
from .model import build_model as build_model
from .parameter import Parameter as Parameter
from .parameter import resolve_name as resolve_name
from .samples import random_motion as random_motion
from .samples import stacked_regressor as stacked_regressor
from .summary import summarise_model as summarise_model
from .terms import EFFECTS as EFFECTS
