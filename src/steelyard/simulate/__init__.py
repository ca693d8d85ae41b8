"""A closed-loop arm with honest noise: to rehearse an experiment, and to test ourselves."""

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
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
    from .simulator import SimulatedRun as SimulatedRun
    from .simulator import Simulator as Simulator
    from .simulator import simulate as simulate

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "experiment": ["Experiment", "Noise"],
        "following": ["Following", "ModelRun"],
        "measure": ["recording_of"],
        "model_loop": ["ModelLoop", "simulate_model"],
        "outline": ["Outline", "OutlineStream"],
        "settings": ["experiment_from_settings"],
        "simulator": ["SimulatedRun", "Simulator", "simulate"],
    },
)
