"""A closed-loop arm with honest noise: to rehearse an experiment, and to test ourselves."""

from .experiment import Experiment as Experiment
from .experiment import Noise as Noise
from .following import Following as Following
from .following import ModelRun as ModelRun
from .measure import recording_of as recording_of
from .model_loop import ModelLoop as ModelLoop
from .model_loop import simulate_model as simulate_model
from .outline import Outline as Outline
from .outline import OutlineStream as OutlineStream
from .settings import experiment_from_settings as experiment_from_settings
from .simulate import SimulatedRun as SimulatedRun
from .simulate import Simulator as Simulator
from .simulate import simulate as simulate
