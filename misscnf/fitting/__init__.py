"""Fitting: objective, loop, schedule, checkpoint, the linear solution and the choice between."""

from misscnf.fitting.fit import Fitted, fit_model
from misscnf.fitting.settings import PRESETS, Settings, Shape, preset_settings

__all__ = ["fit_model", "Fitted", "Settings", "Shape", "PRESETS", "preset_settings"]
