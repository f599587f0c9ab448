"""Fitting: objective, loop, schedule, checkpoint, the linear solution and the choice between."""

from misscnf.fitting.fit import Fitted, fit_model
from misscnf.fitting.replicates import replicate_fit
from misscnf.fitting.settings import PRESETS, Settings, Shape, preset_settings

__all__ = [
    "fit_model",
    "Fitted",
    "replicate_fit",
    "Settings",
    "Shape",
    "PRESETS",
    "preset_settings",
]
