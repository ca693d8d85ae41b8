"""Which effects are unknown and which torques are measured: named parameters and base parameters."""

from .base import BaseParameter as BaseParameter
from .base import BaseParameters as BaseParameters
from .base import DataRank as DataRank
from .base import base_parameters as base_parameters
from .base import data_rank as data_rank
from .base import random_motion as random_motion
from .base import stacked_regressor as stacked_regressor
from .identifiability import Identifiability as Identifiability
from .identifiability import identifiability as identifiability
from .identifiability import summarise_model as summarise_model
from .model import MEASURED as MEASURED
from .model import PAYLOADS as PAYLOADS
from .model import Model as Model
from .model import build_model as build_model
from .model import refuse_history as refuse_history
from .nonlinear import NONLINEAR as NONLINEAR
from .nonlinear import change_columns as change_columns
from .nonlinear import change_inputs as change_inputs
from .nonlinear import constant_value as constant_value
from .nonlinear import constants_of as constants_of
from .nonlinear import kind_of_constant as kind_of_constant
from .nonlinear import with_constants as with_constants
from .terms.term import Parameter as Parameter
from .terms.term import resolve_name as resolve_name
