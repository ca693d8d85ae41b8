"""Maximum likelihood with noise on torques and positions of a periodic motion (P4.2)."""

from .basis import motion_basis as motion_basis
from .estimator import maximum_likelihood as maximum_likelihood
from .fit import LikelihoodFit as LikelihoodFit
from .fit import likelihood_fit as likelihood_fit
from .problem import LikelihoodProblem as LikelihoodProblem
from .problem import LikelihoodRun as LikelihoodRun
from .settings import ALGORITHMS as ALGORITHMS
from .settings import LikelihoodSettings as LikelihoodSettings
from .torque_functions import TorqueFunctions as TorqueFunctions
from .torque_functions import torque_functions as torque_functions
