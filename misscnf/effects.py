r"""Contrasts of interventions.

    E[Y | do(A)] − E[Y | do(B)]

Both arms are swept with the same noise, so that what does not depend on the intervention cancels
and only the contrast is left to average.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Effect", "contrast"]


@dataclass(frozen=True)
class Effect:
    """The contrast of two interventions on one outcome, in the outcome's units."""

    outcome: str
    do: dict[str, Any]
    versus: dict[str, Any]
    estimate: float
    standard_error: float
    """Monte-Carlo error of the estimate; the sampling error of the fit is not in it."""
    mean: float
    """E[Y | do]"""
    mean_versus: float
    """E[Y | versus]"""
    draws: int
    interval: tuple[float, float] | None = None
    """An interval for the sampling error of the fit; None until one is asked for."""

    def __str__(self) -> str:
        versus = f"do({_arm(self.versus)})" if self.versus else "no intervention"
        arms = f"do({_arm(self.do)}) versus {versus}"
        return (
            f"effect on {self.outcome} of {arms}: {self.estimate:.4g} "
            f"(Monte-Carlo standard error {self.standard_error:.2g})"
        )


def _arm(do: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} = {value:g}" if isinstance(value, int | float) else f"{name} = …"
        for name, value in do.items()
    )


def contrast(
    outcome: str,
    do: Mapping[str, Any],
    versus: Mapping[str, Any],
    arms: tuple[np.ndarray, np.ndarray],
) -> Effect:
    """Compares the outcomes of two arms that share their noise, (n,) each."""
    difference = arms[0] - arms[1]
    return Effect(
        outcome=outcome,
        do=dict(do),
        versus=dict(versus),
        estimate=float(difference.mean()),
        standard_error=float(difference.std(ddof=1) / math.sqrt(len(difference))),
        mean=float(arms[0].mean()),
        mean_versus=float(arms[1].mean()),
        draws=len(difference),
    )
