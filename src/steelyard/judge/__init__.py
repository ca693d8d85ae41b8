"""Judgement of an estimate: residual tests, covariances, plausibility, reduction, validation, comparison, verdict."""

from typing import TYPE_CHECKING

from ..lazy import lazy_names
from .bias import Bias as Bias
from .bias import estimate_bias as estimate_bias
from .covariance import COVARIANCES as COVARIANCES
from .covariance import SANDWICHES as SANDWICHES
from .covariance import HacMeat as HacMeat
from .covariance import block_sandwich as block_sandwich
from .covariance import classical as classical
from .covariance import default_lags as default_lags
from .covariance import hac as hac
from .covariance import sandwich as sandwich
from .covariance import with_covariance as with_covariance
from .criteria import EFFORT as EFFORT
from .criteria import LACKS as LACKS
from .criteria import RATIO as RATIO
from .criteria import SCALE as SCALE
from .criteria import IdentificationEvidence as IdentificationEvidence
from .criteria import judge as judge
from .criteria import plausible_rows as plausible_rows
from .delay import LARGEST_DELAY as LARGEST_DELAY
from .delay import Delays as Delays
from .delay import estimate_delays as estimate_delays
from .evaluation import ErrorSums as ErrorSums
from .evaluation import Evaluation as Evaluation
from .evaluation import JointError as JointError
from .evaluation import MotionExtent as MotionExtent
from .evaluation import combined as combined
from .evaluation import faster_joints as faster_joints
from .evaluation import hardly_moving as hardly_moving
from .evaluation import wider_joints as wider_joints
from .patterns import Pattern as Pattern
from .patterns import explain_residuals as explain_residuals
from .plausibility import Impossible as Impossible
from .plausibility import Plausibility as Plausibility
from .plausibility import Scale as Scale
from .plausibility import impossible_values as impossible_values
from .plausibility import inertia_at_postures as inertia_at_postures
from .plausibility import plausibility as plausibility
from .plausibility import squares_by_equation as squares_by_equation
from .reduction import RULES as RULES
from .reduction import LeftOutBlocks as LeftOutBlocks
from .reduction import Reduction as Reduction
from .reduction import reduce_parameters as reduce_parameters
from .repeatability import Disagreement as Disagreement
from .repeatability import Repeatability as Repeatability
from .repeatability import disagreement as disagreement
from .repeatability import recordings_agree as recordings_agree
from .repeatability import repeatability as repeatability
from .residual_tests import JointTests as JointTests
from .residual_tests import UnseenPattern as UnseenPattern
from .residual_tests import breusch_pagan as breusch_pagan
from .residual_tests import jarque_bera as jarque_bera
from .residual_tests import joint_tests as joint_tests
from .residual_tests import kolmogorov_smirnov as kolmogorov_smirnov
from .residual_tests import unseen_patterns as unseen_patterns
from .residuals import RunCollector as RunCollector
from .residuals import residual_runs as residual_runs
from .residuals import residuals_of as residuals_of
from .residuals import unit_of as unit_of
from .thresholds import Thresholds as Thresholds
from .validation import DEFAULT_CUTOFF as DEFAULT_CUTOFF
from .validation import evaluate as evaluate
from .validation import evaluate_each as evaluate_each
from .validation import filtered_torques as filtered_torques
from .validation import predictor as predictor
from .whiteness import DurbinWatson as DurbinWatson
from .whiteness import ResidualCorrelation as ResidualCorrelation
from .whiteness import autocorrelation as autocorrelation
from .whiteness import durbin_watson as durbin_watson
from .whiteness import ljung_box as ljung_box
from .whiteness import whitened_runs as whitened_runs
from .widening import PartSums as PartSums
from .widening import StateSums as StateSums
from .widening import Widening as Widening
from .widening import factor_parts as factor_parts
from .widening import moderated as moderated
from .widening import widened as widened

if TYPE_CHECKING:
    from .comparison import ComparedRun as ComparedRun
    from .comparison import ComparedSummary as ComparedSummary
    from .comparison import ComparedValue as ComparedValue
    from .comparison import Comparison as Comparison
    from .comparison import compare_parameters as compare_parameters
    from .comparison import published_names as published_names
    from .comparison import published_run as published_run
    from .comparison import to_csv as to_csv
    from .comparison import to_latex as to_latex

# Not every command needs these.
__getattr__, __dir__ = lazy_names(
    __name__,
    {"comparison": [
        "ComparedRun", "ComparedSummary", "ComparedValue", "Comparison",
        "compare_parameters", "published_names", "published_run", "to_csv", "to_latex",
    ]},
)  # fmt: skip
