"""Maximum likelihood with noise on torques and positions of a periodic motion (P4.2)."""

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .basis import motion_basis as motion_basis
    from .estimator import maximum_likelihood as maximum_likelihood
    from .fit import LikelihoodFit as LikelihoodFit
    from .fit import likelihood_fit as likelihood_fit
    from .problem import LikelihoodProblem as LikelihoodProblem
    from .problem import LikelihoodRun as LikelihoodRun
    from .settings import ALGORITHMS as ALGORITHMS
    from .settings import LikelihoodSettings as LikelihoodSettings
    from .torques import TorqueFunctions as TorqueFunctions
    from .torques import torque_functions as torque_functions

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "basis": ["motion_basis"],
        "estimator": ["maximum_likelihood"],
        "fit": ["LikelihoodFit", "likelihood_fit"],
        "problem": ["LikelihoodProblem", "LikelihoodRun"],
        "settings": ["ALGORITHMS", "LikelihoodSettings"],
        "torques": ["TorqueFunctions", "torque_functions"],
    },
)
