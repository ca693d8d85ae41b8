"""The Monte-Carlo court: many seeds, many estimators; bias, efficiency, coverage and failures, with their intervals."""

from .arrangement import Arrangement as Arrangement
from .arrangement import arrangement as arrangement
from .bound import Bound as Bound
from .bound import cramer_rao_bound as cramer_rao_bound
from .court import Court as Court
from .court import montecarlo as montecarlo
from .defaults import default_motion as default_motion
from .defaults import default_noise as default_noise
from .linear import LinearStudy as LinearStudy
from .linear import linear_study as linear_study
from .runs import CaseRuns as CaseRuns
from .statistics import IntervalChecks as IntervalChecks
from .statistics import interval_checks as interval_checks
from .study import Case as Case
from .study import Study as Study
from .told import told_court as told_court
from .told import told_times as told_times
from .verdict import CaseVerdict as CaseVerdict
from .verdict import ParameterVerdict as ParameterVerdict
from .verdict import judged_cases as judged_cases
from .words import sentences as sentences
from .workshop import Workshop as Workshop
