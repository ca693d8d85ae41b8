"""Monte Carlo studies of estimators: bias, efficiency, coverage and failures, with their intervals."""

from .bound import Bound as Bound
from .bound import cramer_rao_bound as cramer_rao_bound
from .configuration import Case as Case
from .configuration import StudyConfiguration as StudyConfiguration
from .configuration import StudySettings as StudySettings
from .configuration import default_motion as default_motion
from .configuration import default_noise as default_noise
from .configuration import study_configuration as study_configuration
from .experiments import SimulatedExperiments as SimulatedExperiments
from .linear import LinearStudy as LinearStudy
from .linear import linear_study as linear_study
from .run import StudyResult as StudyResult
from .run import montecarlo as montecarlo
from .run import study_to_json as study_to_json
from .run import times_to_json as times_to_json
from .statistics import CaseRuns as CaseRuns
from .statistics import IntervalChecks as IntervalChecks
from .statistics import interval_checks as interval_checks
from .verdict import CaseVerdict as CaseVerdict
from .verdict import ParameterVerdict as ParameterVerdict
from .verdict import judged_cases as judged_cases
from .verdict import sentences as sentences
