r"""A fitted model among dowhy's: as a `dowhy.gcm` model, and as an estimator of `CausalModel`.

    scm = misscnf.dowhy.to_gcm(model)                     # what gcm's functions take
    estimate = causal_model.estimate_effect(
        estimand, "backdoor.misscnf.dowhy.Estimator", method_params={"preset": "linear"})

A gcm model has a mechanism for each node, in the cells of the table:

    x_i = f_i(u_i; x_pa(i)),   u_i ~ N(0, 1),

which `draw_noise_samples`, `evaluate` and `estimate_noise` are for dowhy, and `generate` and
`abduct` for us. gcm asks these of rows without holes; what a row hides only our own verbs
integrate over. Randomness starts from numpy's global state, as everywhere in dowhy.

Needs dowhy (`pip install 'misscnf[dowhy]'`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd
import torch
from torch import Generator, Tensor

from misscnf.data.codecs import Column
from misscnf.errors import InputError
from misscnf.estimators.fitted import FittedFlow
from misscnf.estimators.misscnf import MissCNF
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Mechanism

if TYPE_CHECKING:
    from misscnf.queries.effects import Effect

try:
    from dowhy import gcm
    from dowhy.causal_estimator import CausalEstimate, CausalEstimator
    from dowhy.gcm.causal_mechanisms import (
        ConditionalStochasticModel,
        InvertibleFunctionalCausalModel,
        StochasticModel,
    )
    from dowhy.gcm.causal_models import PARENTS_DURING_FIT
    from dowhy.graph import get_ordered_predecessors
except ModuleNotFoundError as problem:
    raise ModuleNotFoundError(
        f"misscnf.dowhy needs {problem.name!r}, which is not installed; "
        f"`pip install 'misscnf[dowhy]'` brings it."
    ) from problem

__all__ = ["to_gcm", "to_networkx", "read_graph", "Estimator"]


# ------------------------------------------------------------------------------------- graphs


def to_networkx(graph: CausalGraph) -> nx.DiGraph:
    """Returns a graph as `CausalModel(graph=…)` takes it, hidden causes marked as unobserved.

    Arguments:
        graph: A `CausalGraph`.

    Example:
        >>> found = to_networkx(CausalGraph.read("u -> dose; u -> days; dose -> days; u [latent]"))
        >>> found.nodes["u"]["observed"], found.nodes["dose"]["observed"]
        ('no', 'yes')
    """
    found = graph.to_networkx()
    for name in found.nodes:
        found.nodes[name]["observed"] = "no" if name in graph.latent else "yes"
    return found


def read_graph(model: Any) -> CausalGraph:  # noqa: ANN401 - a class of dowhy's
    """Returns the graph of a `CausalModel` or of a gcm model.

    Hidden causes stay hidden; the nodes U that dowhy adds by itself are left out.

    Arguments:
        model: A `CausalModel`, or one of `dowhy.gcm`.

    Example:
        >>> given = nx.DiGraph([("dose", "days")])
        >>> read_graph(gcm.StructuralCausalModel(given)).edges
        [('dose', 'days')]
    """
    held = getattr(model, "_graph", model)  # CausalModel keeps its graph in one of its own
    found = nx.DiGraph(getattr(held, "_graph", getattr(model, "graph", held)))
    added = [name for name in found.nodes if str(name).startswith("Unobserved Confounders")]
    added += ["U"] if found.nodes.get("U", {}).get("observed") == "no" else []
    found.remove_nodes_from(added)
    plain = nx.DiGraph(found.edges)
    plain.add_nodes_from((n, _latent(about)) for n, about in found.nodes(data=True))
    return CausalGraph.read(plain)


def _latent(about: Mapping[str, Any]) -> dict[str, Any]:
    return {"latent": True} if about.get("observed") == "no" else {}


# ---------------------------------------------------------------------------------- mechanisms


class _Law:
    """The law of a node, on cells: what root and other nodes share.

    Arguments:
        mechanism: Of the model.
        column: The codec of its cells.
        parents: Those of its causes, each with its place among what dowhy hands over.
    """

    def __init__(
        self, mechanism: Mechanism, column: Column, parents: Sequence[tuple[int, Column]]
    ) -> None:
        self.mechanism, self.column, self.parents = mechanism, column, tuple(parents)

    def fit(self, *given: object, **named: object) -> None:
        """Leaves the law as it was fitted to the table with its holes."""

    def clone(self) -> Any:  # noqa: ANN401 - of each class its own
        """Returns the same law: it is never changed."""
        return self

    def noise(self, rows: int) -> Tensor:
        """Draws standard normal noise."""
        size = (rows,) if self.mechanism.noise_size == 1 else (rows, self.mechanism.noise_size)
        return torch.randn(size, generator=_generator(), dtype=torch.float64)

    def cells(self, noise: Tensor, given: np.ndarray) -> np.ndarray:
        """Returns the cells that noise makes, (rows, 1)."""
        with torch.no_grad():
            values = self.mechanism.generate(noise, self.read(given, len(noise)))
        return self.column.series(values.numpy(), exact=True).to_numpy()[:, None]

    def read(self, given: np.ndarray, rows: int) -> Tensor:
        """Returns cells of the parents as the model has them, (rows, parents)."""
        if not self.parents:
            return torch.zeros(rows, 0, dtype=torch.float64)
        given = given.reshape(rows, -1)
        return torch.stack([_values(own, given[:, i]) for i, own in self.parents], -1)


class _Root(_Law, StochasticModel):
    """A node without causes."""

    def draw_samples(self, num_samples: int) -> np.ndarray:
        """Draws cells."""
        return self.cells(self.noise(num_samples), np.empty((num_samples, 0)))


class _Child(_Law, ConditionalStochasticModel):
    """A node whose noise is several numbers: categories without an order."""

    def draw_samples(self, parent_samples: np.ndarray) -> np.ndarray:
        """Draws cells given those of the causes."""
        return self.cells(self.noise(len(parent_samples)), parent_samples)


class _Invertible(_Law, InvertibleFunctionalCausalModel):
    """A node with one noise."""

    def draw_noise_samples(self, num_samples: int) -> np.ndarray:
        """Draws noise."""
        return self.noise(num_samples).numpy()[:, None]

    def evaluate(self, parent_samples: np.ndarray, noise_samples: np.ndarray) -> np.ndarray:
        """Returns the cells that noise makes given those of the causes."""
        return self.cells(torch.as_tensor(noise_samples.reshape(-1)).double(), parent_samples)

    def estimate_noise(self, target_samples: np.ndarray, parent_samples: np.ndarray) -> np.ndarray:
        """Returns the noise of cells; one of those that make a level is drawn."""
        own = _values(self.column, target_samples.reshape(-1))
        given = self.read(parent_samples, len(own))
        with torch.no_grad():
            return self.mechanism.abduct(own, given, _generator()).numpy()[:, None]


def _values(column: Column, cells: np.ndarray) -> Tensor:
    """Returns cells as the model has them; a hole or an impossible value is refused."""
    raw = column.parse(pd.Series(cells))
    if np.isnan(raw).any():
        raise InputError(
            f"{column.name!r} has a cell that dowhy.gcm cannot use, a hole or an impossible one: "
            f"expected {column.expected}. `MissCNF.counterfactual` takes rows with holes."
        )
    return torch.as_tensor(column.encode(raw)).double()


def _generator() -> Generator:
    """Returns a generator that follows numpy's global state, which dowhy sets and reads."""
    return torch.Generator().manual_seed(int(np.random.randint(2**31)))


def to_gcm(model: FittedFlow) -> gcm.ProbabilisticCausalModel:
    """Returns a fitted model as one of `dowhy.gcm`.

    It is an `InvertibleStructuralCausalModel`, which answers counterfactuals too, unless a column
    has categories without an order: dowhy holds one noise a node, and these have one a category.

    Arguments:
        model: A fitted `MissCNF`, of a table with a row a person.

    Returns:
        A model of `dowhy.gcm`, with the fitted laws for its mechanisms.

    Example:
        >>> dose = np.random.default_rng(0).normal(size=200)
        >>> df = pd.DataFrame({"dose": dose, "days": 9 - 2 * dose + np.cos(9 * dose)})
        >>> scm = to_gcm(MissCNF("dose -> days", "linear").fit(df))
        >>> do = {"dose": lambda dose: 1.0}
        >>> drawn = gcm.interventional_samples(scm, do, num_samples_to_draw=1000)
        >>> float(drawn["days"].mean().round())
        7.0
    """
    model._refuse_panel("a model for dowhy")
    graph, columns = model.graph_, model.schema_.columns
    if graph.indicators:
        raise InputError("dowhy.gcm has no place for a loss in the graph; fit without loss=….")
    found = gcm.InvertibleStructuralCausalModel(to_networkx(graph))
    if any(model.model_.law(i).noise_size > 1 for i in range(len(graph)) if graph.parents[i]):
        found = gcm.ProbabilisticCausalModel(found.graph)
    for i, name in enumerate(graph.nodes):
        law, ordered = model.model_.law(i), get_ordered_predecessors(found.graph, name)
        given = [(ordered.index(graph.nodes[j]), columns[j]) for j in graph.parents[i]]
        kind = _Root if not given else _Child if law.noise_size > 1 else _Invertible
        found.set_causal_mechanism(name, kind(law, columns[i], given))
        found.graph.nodes[name][PARENTS_DURING_FIT] = ordered
    return found


# ----------------------------------------------------------------------------------- estimator


class Estimator(CausalEstimator):
    """The effect of a treatment by a model of the table as it is, holes and all.

    For `CausalModel.estimate_effect`, as the method `"backdoor.misscnf.dowhy.Estimator"`. What its
    `method_params` may hold:

    Arguments:
        identified_estimand: What `CausalModel.identify_effect` returns.
        model: A fitted `MissCNF` to ask; without one, a model is fitted to the data.
        graph: The graph of that fit; without one, the back-door columns are a block that points to
            the treatment and to the outcome.
        preset: The preset of that fit.
        seed: Where randomness starts.
        confidence_intervals: Whether to make intervals; they come from replicates of the fit.
        confidence_level: Of the intervals.
        others: What dowhy's own class takes.

    Example:
        >>> from dowhy import CausalModel
        >>> rng = np.random.default_rng(0)
        >>> age = rng.normal(size=300)
        >>> dose = age + rng.normal(size=300)
        >>> df = pd.DataFrame({"age": age, "dose": dose})
        >>> df["days"] = age - 2 * dose + rng.normal(size=300)
        >>> graph = nx.DiGraph([("age", "dose"), ("age", "days"), ("dose", "days")])
        >>> asked = CausalModel(df, treatment="dose", outcome="days", graph=graph)
        >>> found = asked.estimate_effect(
        ...     asked.identify_effect(),
        ...     "backdoor.misscnf.dowhy.Estimator",
        ...     control_value=0,
        ...     treatment_value=1,
        ...     method_params={"preset": "linear"},
        ... )
        >>> round(found.value)
        -2
    """

    def __init__(
        self,
        identified_estimand: Any,  # noqa: ANN401 - a class of dowhy's
        *,
        model: FittedFlow | None = None,
        graph: Any = None,  # noqa: ANN401 - whatever `CausalGraph.read` takes
        preset: str = "auto",
        seed: int = 0,
        confidence_intervals: bool = False,
        confidence_level: float = 0.95,
        **others: Any,  # noqa: ANN401 - as in dowhy
    ) -> None:
        super().__init__(
            identified_estimand,
            confidence_intervals=confidence_intervals,
            confidence_level=confidence_level,
            **others,
        )
        self.model, self.graph, self.preset, self.seed = model, graph, preset, seed
        self.effect_: Effect | None = None

    def fit(
        self, data: pd.DataFrame, effect_modifier_names: Sequence[str] | None = None
    ) -> Estimator:
        """Fits the model, unless one was given."""
        self._set_effect_modifiers(data, list(effect_modifier_names or ()))
        if self.model is None:
            treatment, outcome = self._names()
            graph, blocks = self.graph, None
            if graph is None:
                graph = [(treatment, outcome)]
                names = self._target_estimand.get_adjustment_set()
                if names:
                    blocks = {"adjusted for": list(names)}
                    graph += [("adjusted for", treatment), ("adjusted for", outcome)]
            made = MissCNF(graph, self.preset, blocks=blocks, seed=self.seed, progress=False)
            self.model = made.fit(data)
        return self

    def estimate_effect(
        self,
        data: pd.DataFrame,
        treatment_value: Any = 1,  # noqa: ANN401 - a cell
        control_value: Any = 0,  # noqa: ANN401 - a cell
        target_units: Any = None,  # noqa: ANN401 - as in dowhy
        **_: Any,  # noqa: ANN401 - as in dowhy
    ) -> CausalEstimate:
        """Returns the effect of one value of the treatment against another."""
        if target_units not in (None, "ate", "att"):
            raise InputError(
                f"target_units is {target_units!r}; expected 'ate' or 'att'. Ask "
                f"`MissCNF.effect(where=…)` about a group."
            )
        self._target_units, (treatment, outcome) = target_units, self._names()
        self._treatment_value, self._control_value = treatment_value, control_value
        self.effect_ = self.fit(data).model.effect(  # type: ignore[union-attr]
            outcome,
            do={treatment: treatment_value},
            versus={treatment: control_value},
            treated=target_units == "att",
            interval=self.confidence_level if self._confidence_intervals else None,
            data=data,
            seed=self.seed,
        )
        estimate = CausalEstimate(
            data=data,
            treatment_name=self._target_estimand.treatment_variable,
            outcome_name=self._target_estimand.outcome_variable,
            estimate=self.effect_.estimate,
            target_estimand=self._target_estimand,
            realized_estimand_expr=self.construct_symbolic_estimator(self._target_estimand),
            control_value=control_value,
            treatment_value=treatment_value,
        )
        estimate.add_estimator(self)
        return estimate

    def estimate_confidence_intervals(self, *_: object, **__: object) -> tuple[float, float]:
        """Returns the interval of the effect, for the sampling error of the fit."""
        if self.effect_ is None or self.effect_.interval is None:
            raise InputError("there is no interval; ask for it, confidence_intervals=True.")
        return self.effect_.interval

    def construct_symbolic_estimator(self, estimand: Any) -> str:  # noqa: ANN401 - as in dowhy
        """Returns what is estimated, in symbols."""
        treatment, outcome = self._names()
        return f"E[{outcome}; do({treatment})], by the likelihood of what each row shows"

    def _names(self) -> tuple[str, str]:
        treatments, outcomes = (
            [names] if isinstance(names, str) else list(names)
            for names in (
                self._target_estimand.treatment_variable,
                self._target_estimand.outcome_variable,
            )
        )
        if len(treatments) > 1 or len(outcomes) > 1:
            raise InputError("dowhy asks about several columns; name one treatment, one outcome.")
        return treatments[0], outcomes[0]
