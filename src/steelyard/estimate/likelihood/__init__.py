"""Maximum likelihood with noise on torques and positions of a periodic motion (P4.2)."""

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .estimator import maximum_likelihood as maximum_likelihood
    from .fit import LikelihoodFit as LikelihoodFit
    from .fit import likelihood_fit as likelihood_fit
    from .problem import LikelihoodProblem as LikelihoodProblem
    from .problem import LikelihoodRun as LikelihoodRun
    from .problem import LikelihoodSettings as LikelihoodSettings
    from .problem import TorqueFunctions as TorqueFunctions
    from .problem import motion_basis as motion_basis
    from .problem import torque_functions as torque_functions

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "problem": [
            "LikelihoodProblem", "LikelihoodRun", "LikelihoodSettings", "TorqueFunctions", "motion_basis",
            "torque_functions",
        ],
        "estimator": ["maximum_likelihood"], "fit": ["LikelihoodFit", "likelihood_fit"],
    },
)  # fmt: skip
