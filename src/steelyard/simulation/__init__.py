"""Simulation of closed-loop arms with noise, to plan experiments and to test identification."""

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .experiment import Experiment as Experiment
    from .experiment import Noise as Noise
    from .experiment import experiment_from_settings as experiment_from_settings
    from .model_loop import Following as Following
    from .model_loop import ModelLoop as ModelLoop
    from .model_loop import ModelRun as ModelRun
    from .model_loop import Outline as Outline
    from .model_loop import OutlineStream as OutlineStream
    from .model_loop import simulate_model as simulate_model
    from .simulator import SimulatedRun as SimulatedRun
    from .simulator import Simulator as Simulator
    from .simulator import recording_of as recording_of
    from .simulator import simulate as simulate
    from .simulator import simulate_together as simulate_together

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "experiment": ["Experiment", "Noise", "experiment_from_settings"],
        "model_loop": ["Following", "ModelRun", "ModelLoop", "simulate_model", "Outline", "OutlineStream"],
        "simulator": ["recording_of", "SimulatedRun", "Simulator", "simulate", "simulate_together"],
    },
)
