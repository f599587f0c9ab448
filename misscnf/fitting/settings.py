r"""What a fit is told: the shapes of its mechanisms and how to train them. Presets are data.

`paper` follows the paper's appendix "Causal normalizing flows": affine maps from two hidden layers
of 64 ReLU units, AdamW at 1e-3, batches of 4096, 1000 epochs, a plateau schedule, 512 independent
draws averaged jointly, the gradient taken through the draws, the weights of the last epoch. One
thing differs: each node has a network of its own of these sizes, where the public library deals
64 units out among all nodes of one masked network.

`linear` is full-information maximum likelihood. `auto` starts from it, and gives a curve or a
network to the nodes for which rows that were left out ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from misscnf.data.domains import CONTINUOUS, Domain
from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.inference.integrals import ALGORITHM_1, Effort
from misscnf.mechanisms import (
    Affine,
    Categorical,
    Count,
    Gaussian,
    Mechanism,
    Ordinal,
    Parents,
    Spline,
)
from misscnf.model import StructuralModel

__all__ = ["Settings", "Shape", "PRESETS", "preset_settings"]


@dataclass(frozen=True)
class Shape:
    """The mechanism that every node gets, according to what its values can be."""

    kind: str = "gaussian"
    """What continuous nodes get: "gaussian", "spline" or "affine"."""
    hidden: tuple[int, ...] = (64, 64, 64)
    """Hidden widths of the network of means or logits; none makes them linear."""
    scale_hidden: tuple[int, ...] | None = None
    """Hidden widths of the network of scales, and of the spacings of levels; None makes them
    constant."""
    activation: str = "silu"
    """"silu" or "relu"."""
    curve: tuple[int, ...] | None = None
    """Centres, products and basis functions of the curve of a continuous node's mean; None for
    none."""

    def build(self, parents: Parents, domain: Domain = CONTINUOUS) -> Mechanism:
        """Makes the mechanism of a node.

        Arguments:
            parents: The domains of its parents, or their number.
            domain: What its values can be.
        """
        hidden, activation = self.hidden, self.activation
        if domain.kind in ("binary", "ordinal"):
            return Ordinal(parents, domain.levels or 2, hidden, self.scale_hidden, activation)
        if domain.kind == "categorical":
            return Categorical(parents, domain.levels or 2, hidden, activation)
        if domain.kind == "count":
            return Count(parents, hidden, activation=activation)
        if self.kind == "affine":
            return Affine(parents, self.hidden, self.activation)
        if self.kind == "spline":
            return Spline(
                parents,
                self.hidden,
                self.scale_hidden,
                activation=self.activation,
                mean_curve=self.curve,
            )
        return Gaussian(parents, self.hidden, self.scale_hidden, self.activation, self.curve)

    def build_model(self, graph: CausalGraph, domains: Sequence[Domain]) -> StructuralModel:
        """Makes a model with a mechanism of this shape for every node."""
        mechanisms = [
            self.build([domains[j] for j in parents], domain)
            for parents, domain in zip(graph.parents, domains, strict=True)
        ]
        return StructuralModel(graph, mechanisms)


@dataclass(frozen=True)
class Settings:
    """How a model is shaped and trained."""

    preset: str = "auto"
    """The name of the preset that these settings come from."""
    shape: Shape = field(default_factory=Shape)
    """The kind of mechanism that every node gets."""
    train: bool = True
    """Whether networks are trained; the preset `linear` only solves."""
    linear_start: bool = True
    """Whether to start from the maximum-likelihood linear model."""
    compare_linear: bool = True
    """Whether nodes stay linear unless rows that were left out favour a network."""
    curves: bool = True
    """Whether a mean may be a curve as stiff as the evidence asks, between line and network; never
    where the shape asks for another kind of mechanism than "gaussian"."""
    richer_noise: bool = True
    """Whether nodes whose noise is odd may earn a network of the scale and a spline."""
    epochs: int = 40
    """Passes over the training rows that follow the likelihood of all that is seen."""
    complete_family_share: float = 0.5
    """So many times as many passes before them, which learn from the families that rows show whole
    and cost no integral; nodes whose family fewer rows than `loop.FEWEST_SHOWN` show wait."""
    batch: int = 512
    """Rows in a step; fewer where the table is short, so that an epoch has several steps."""
    steps_an_epoch: int = 16
    """At least so many steps in an epoch, as far as batches of 64 rows allow."""
    learning_rate: float = 1e-2
    """The rate, or the peak of the one-cycle schedule."""
    schedule: str = "one-cycle"
    """"one-cycle" or "plateau"."""
    averaging: float | None = 0.99
    """Exponential averaging of the weights, per step; None for none."""
    keep_best: bool = True
    """Whether the best epoch by held-out likelihood may be kept, instead of the last; it must
    beat the last by `loop.ERRORS_TO_BEAT` standard errors."""
    patience: int | None = None
    """Epochs without a better held-out likelihood before training stops; None never stops."""
    gradient: str = "fisher"
    """"fisher", or "pathwise" through the draws as in the paper."""
    completions: int = 2
    """Posterior draws of a row that are differentiated by the Fisher gradient."""
    effort: Effort = field(default_factory=Effort)
    """How hard a step works on what is hidden."""
    validation_effort: Effort = field(default_factory=lambda: Effort(draws=128))
    """How hard the evaluation after each epoch works."""
    joint: bool = False
    """Whether all that is hidden in a row is averaged jointly, as Algorithm 1 prints it."""

    def to_dict(self) -> dict[str, Any]:
        """Returns a JSON-friendly form."""
        return asdict(self)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Settings:
        """Reads what `to_dict` wrote."""
        shape = data["shape"]
        scale_hidden, curve = shape["scale_hidden"], shape.get("curve")
        return Settings(
            **{
                **data,
                "shape": Shape(
                    **{
                        **shape,
                        "hidden": tuple(shape["hidden"]),
                        "scale_hidden": None if scale_hidden is None else tuple(scale_hidden),
                        "curve": None if curve is None else tuple(curve),
                    }
                ),
                "effort": Effort.from_dict(data["effort"]),
                "validation_effort": Effort.from_dict(data["validation_effort"]),
            }
        )

    def batch_for(self, rows: int) -> int:
        """Returns the rows of a step for a table of so many rows."""
        return max(1, min(self.batch, max(64, rows // self.steps_an_epoch), rows))


PRESETS: dict[str, Settings] = {
    "auto": Settings(),
    "linear": Settings(preset="linear", shape=Shape(hidden=()), train=False, compare_linear=False),
    "paper": Settings(
        preset="paper",
        shape=Shape(kind="affine", hidden=(64, 64), activation="relu"),
        linear_start=False,
        compare_linear=False,
        epochs=1000,
        complete_family_share=0.0,
        batch=4096,
        steps_an_epoch=1,
        learning_rate=1e-3,
        schedule="plateau",
        averaging=None,
        keep_best=False,
        gradient="pathwise",
        effort=ALGORITHM_1,
        validation_effort=ALGORITHM_1,
        joint=True,
    ),
}
"""The presets by name."""


def preset_settings(preset: str | Settings, **changes: object) -> Settings:
    """Returns the settings of a preset, with some of them changed."""
    if isinstance(preset, str):
        if preset not in PRESETS:
            known = ", ".join(PRESETS)
            raise InputError(f"there is no preset {preset!r}; choose one of {known}.")
        preset = PRESETS[preset]
    unknown = sorted(set(changes) - set(preset.to_dict()))
    if unknown:
        known = ", ".join(preset.to_dict())
        raise InputError(f"there is no setting {unknown[0]!r}; the settings are {known}.")
    return replace(preset, **changes)  # type: ignore[arg-type]
