"""Physical consistency: standard parameters of an arm that can exist, from data and a prior."""

from typing import TYPE_CHECKING

from ..lazy import lazy_names
from .constraints import ConsistencySettings as ConsistencySettings

if TYPE_CHECKING:
    from .agreement import PriorDisagreement as PriorDisagreement
    from .agreement import PriorUsed as PriorUsed
    from .problem import StandardProblem as StandardProblem
    from .pseudo_inertia import reference_body as reference_body
    from .pseudo_inertia import usual_links as usual_links
    from .standard import StandardParameters as StandardParameters
    from .standard import standard_parameters as standard_parameters

# The solver takes a while to load, and settings alone do not need it.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "agreement": ["PriorDisagreement", "PriorUsed"],
        "problem": ["StandardProblem"],
        "pseudo_inertia": ["reference_body", "usual_links"],
        "standard": ["StandardParameters", "standard_parameters"],
    },
)
