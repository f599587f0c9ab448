r"""Reference-based imputation: what those who left a trial would have shown without their drug.

Of a person in arm a who was last seen at visit s, values up to s are as they are (holes between
them are lost at random). Later ones follow a law whose mean μ* borrows from the reference arm r
(Carpenter, Roger and Kenward 2013):

| regime | μ*_j, j > s | regressions | in words |
|---|---|---|---|
| MAR | μ_a,j | a | as those of the own arm who stayed |
| J2R | μ_r,j | r | jump to reference: the benefit is gone at once |
| CIR | μ_a,s + μ_r,j − μ_r,s | r | copy increments: the benefit so far is kept |
| CR | μ_r,j | r | copy reference: as if in the reference arm from the start |
| LMCF | μ_a,s | a | the last mean is carried forward |

μ_a,j is the mean of visit j in arm a given what is known at baseline. In terms of mechanisms this
is one sweep. With b the arm whose regressions hold, a person's past is carried over to that arm,
the future drawn there from the mechanisms, and carried back:

    z_j = y_j − μ*_j + μ_b,j   for j ≤ s,      z_j = f_j(u_j; b, z_<j),   y_j = z_j − μ_b,j + μ*_j,

where μ*_j = μ_a,j for j ≤ s, and μ_r,j under CR, which looks at the past as the reference does.
Lines and normal noise make this the conditional normal law of that paper.

The effect is that of the trial's own analysis (ANCOVA): the completed outcome at the last visit by
least squares on the arm and what is known at baseline. Its error can mean two things:

    anchored       Rubin's rules on completed tables, each by another replicate of the fit: those
                   who left tell as much about their arm as if they had been lost at random
    frequentist    the spread of the answer over replicates of fit and rows: how far the number
                   moves from trial to trial. It is smaller, as what is borrowed is not new each
                   time; Bartlett (2023) and Wolbers et al. (2022) discuss which to report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
import torch
from scipy.special import stdtrit
from torch import Tensor

from misscnf.data.cells import listed
from misscnf.data.codecs import Continuous
from misscnf.data.panel import Panel
from misscnf.data.table import IncompleteTable, Schema
from misscnf.display.notebook import card
from misscnf.draws import derive_generator
from misscnf.errors import InputError
from misscnf.fitting.replicates import Replicates, bootstrap_weights
from misscnf.graph import CausalGraph
from misscnf.graph.template import at_visit
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort
from misscnf.inference.posterior import draw_completions
from misscnf.model import Hold, StructuralModel
from misscnf.queries.interventions import Do, read_policies, written
from misscnf.queries.pooling import pool_estimates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Regime", "ReferenceBased", "Trial", "compare_regimes", "read_regimes"]

Regime = Literal["MAR", "J2R", "CIR", "CR", "LMCF"]
"""What may be said of those who left."""


@dataclass(frozen=True)
class ReferenceBased:
    """An effect under regimes of those who left. Made by `model.sensitivity(…, reference=…)`."""

    outcome: str
    """The column at the last visit."""
    do: dict[str, Any]
    versus: dict[str, Any]
    """The reference arm."""
    table: pd.DataFrame
    """A row a regime: reference, estimate (do minus versus), mean, mean_versus; with intervals
    also `anchored_error` (Rubin's rules), anchored_lower, anchored_upper, `frequentist_error`
    (replicates), frequentist_lower, frequentist_upper."""
    people: tuple[int, int]
    """How many are in the two arms."""
    left: tuple[int, int]
    """How many of them were not seen at the last visit."""
    adjusted: tuple[str, ...]
    """What the arms are compared beside: what is known at baseline."""
    level: float | None = None
    replicates: int | None = None
    notes: tuple[str, ...] = ()
    """Why there are no intervals, or what to know of them."""

    @property
    def title(self) -> str:
        """Which effect this is, in words."""
        return f"effect on {self.outcome} of {written(self.do)} versus {written(self.versus)}"

    @property
    def told(self) -> str:
        """Who was compared with whom, in words."""
        (first, second), (lost, other) = self.people, self.left
        beside = f", beside {listed(self.adjusted)}" if self.adjusted else ""
        return (
            f"{first} people against {second} of the reference arm, of whom {lost} and {other} "
            f"were not seen at the end; compared by least squares{beside}."
        )

    @property
    def errors(self) -> str:
        """What the two kinds of error are, in words."""
        return (
            "anchored: Rubin's rules, those who left tell as much as if lost at random; "
            "frequentist: how far the estimate moves from trial to trial."
        )

    def to_frame(self) -> pd.DataFrame:
        """Returns `table`, a row a regime."""
        return self.table.copy()

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        said = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "table"}
        return {**said, "regimes": self.table.to_dict(orient="records")}

    def __str__(self) -> str:
        lines = self.table.to_string(index=False, float_format=lambda number: f"{number:.4g}")
        more = [self.errors] if self.level is not None else []
        notes = [f"  But {note}" for note in self.notes]
        head = f"{self.title}, if those who left follow a regime"
        return "\n".join([head, self.told, lines, *more, *notes])

    def _repr_html_(self) -> str:
        return card(self.title, {}, {"": self.table}, (self.told, self.errors, *self.notes))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the estimate under each regime, with the interval of either kind.

        Arguments:
            ax: Axes to draw into; None makes a figure.
        """
        from misscnf import plots

        return plots.regimes(self, ax=ax)


class _Course(NamedTuple):
    """The repeated measures between the treatment and the outcome, in graph order."""

    nodes: tuple[int, ...]
    measures: tuple[str, ...]
    """What each is a measurement of; one thing in a wide table."""
    visits: tuple[int, ...]
    """When each is measured."""

    @staticmethod
    def of(
        graph: CausalGraph, schema: Schema, treatment: int, outcome: int, panel: Panel | None
    ) -> _Course:
        """Finds what lies between a treatment and an outcome."""
        moved = graph.descendants([treatment]) & graph.ancestral_closure([outcome])
        nodes = tuple(sorted(moved - {treatment}))
        named = [graph.nodes[node] for node in nodes]
        if outcome not in moved:
            raise InputError(
                f"{graph.nodes[treatment]!r} does not lead to {graph.nodes[outcome]!r} in the "
                f"graph; a trial compares its arms on what they lead to."
            )
        odd = [name for name in named if not isinstance(_column(schema, graph, name), Continuous)]
        if odd:
            raise InputError(
                f"reference-based imputation needs means of what is measured after "
                f"{graph.nodes[treatment]!r}, and {odd[0]!r} is no number on a continuous scale; "
                f"ask for shift= or ratio= instead."
            )
        if panel is None:
            return _Course(nodes, ("",) * len(nodes), tuple(range(len(nodes))))
        places = {
            name: (column, panel.visits.index(visit))
            for column in panel.template.varying
            for visit, name in _by_visit(panel, column)
        }
        where = [places[name] for name in named]
        return _Course(nodes, tuple(c for c, _ in where), tuple(k for _, k in where))

    def last_seen(self, observed: Tensor) -> np.ndarray:
        """Returns the last visit at which each row shows something, −1 where none, (N,)."""
        seen = observed[:, list(self.nodes)].numpy()
        return np.where(seen, np.array(self.visits), -1).max(1)

    def last_measured(self, last: np.ndarray) -> np.ndarray:
        """Returns the place of the last measure of the same thing by then, (N, m), −1 for none."""
        found = np.full((len(last), len(self.nodes)), -1)
        for j, measure in enumerate(self.measures):
            for i, (other, visit) in enumerate(zip(self.measures, self.visits, strict=True)):
                if other == measure:
                    found[:, j] = np.where(visit <= last, i, found[:, j])
        return found


def _column(schema: Schema, graph: CausalGraph, name: str) -> object:
    return schema.columns[graph.index(name)]


def _by_visit(panel: Panel, column: str) -> list[tuple[float, str]]:
    """Returns the visits of a column and its nodes there."""
    shown = set(panel.at(column))
    return [(v, at_visit(column, v)) for v in panel.visits if at_visit(column, v) in shown]


@dataclass(frozen=True)
class Trial:
    """The rows of two arms, and what those who left are told to follow."""

    graph: CausalGraph
    schema: Schema
    treatment: int
    codes: tuple[float, float]
    """Of the arm that is asked about, and of the reference."""
    outcome: int
    course: _Course
    adjusted: tuple[int, ...]
    """What is known at baseline and leads to the course."""
    values: Tensor
    """(N, d) of the rows in the two arms"""
    observed: Tensor
    """(N, d)"""
    rows: np.ndarray
    """(N,) their places in the table"""

    @staticmethod
    def of(
        graph: CausalGraph,
        schema: Schema,
        table: IncompleteTable,
        outcome: str,
        arms: tuple[Do, Do],
        panel: Panel | None,
    ) -> Trial:
        """Reads the arms of a trial."""
        names = [list(arm) for arm in arms]
        if names[0] != names[1] or len(names[0]) != 1:
            raise InputError(
                "reference-based imputation compares two arms of one treatment, such as "
                "do={'drug': 1} with versus={'drug': 0}, the reference; got "
                f"{written(arms[0])} and {written(arms[1])}."
            )
        (name,) = names[0]
        if panel is not None and (name in panel.template.varying or panel.events):
            why = f"{name!r} changes from visit to visit"
            if panel.events:
                why = f"people have events ({', '.join(panel.events)}), after which nothing is"
            raise InputError(
                f"reference-based imputation is for arms that are given once and outcomes that "
                f"everybody has, and {why}; ask for effect() or risk() under regimes."
            )
        treatment = graph.index(name)
        codes = [_code(graph, schema, arm, treatment) for arm in arms]
        shown = table.observed[:, treatment]
        if not bool(shown.all()):
            raise InputError(
                f"{name!r} says who is in which arm, and is missing in "
                f"{int((~shown).sum())} rows; leave these out, or fill them."
            )
        own = table.values[:, treatment].double()
        inside = (own == codes[0]) | (own == codes[1])
        for code, arm in zip(codes, arms, strict=True):
            if not bool((own == code).any()):
                raise InputError(f"no row has {written(arm)[3:-1]}; name an arm of the table.")
        node = graph.index(outcome)
        course = _Course.of(graph, schema, treatment, node, panel)
        causes = {j for i in course.nodes for j in graph.parents[i]}
        known = causes - set(course.nodes) - {treatment} - set(schema.fixed)
        rows = inside.nonzero()[:, 0]
        parts = table.values[rows].double(), table.observed[rows], rows.numpy()
        about = (graph, schema, treatment, (codes[0], codes[1]), node)
        return Trial(*about, course, tuple(sorted(known)), *parts)

    def sizes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Returns how many people the arms have, and how many were not seen at the end."""
        first = self.in_first
        lost = ~self.observed[:, self.outcome].numpy()
        left = int((first & lost).sum()), int((~first & lost).sum())
        return (int(first.sum()), int((~first).sum())), left

    @property
    def in_first(self) -> np.ndarray:
        """Who is in the arm that is asked about, (N,)."""
        return (self.values[:, self.treatment] == self.codes[0]).numpy()

    def complete(
        self, model: StructuralModel, draws: int, effort: Effort, seed: int, *purpose: int
    ) -> Completed:
        """Completes the rows by a model as if lost at random, with what every regime needs.

        Noise comes in pairs, u and −u, so that of lines the mean over them is exact.
        """

        def numbers(what: str) -> torch.Generator:
            return derive_generator(seed, "reference", *purpose, what)

        plan, generator = Plan.make(self.graph, self.observed), numbers("past")
        past = draw_completions(model, self.values, plan, draws, generator, effort)
        shape = (draws, len(past[0]), model.noise_width)
        noise = torch.randn(shape, generator=numbers("future"), dtype=torch.float64)
        past, noise = torch.cat([past, past]), torch.cat([noise, -noise])
        lines = all(model.mechanism(i).linear_form() is not None for i in self.course.nodes)
        pairs = 1 if lines else draws
        means = [self._means(model, past, code, pairs, numbers("means")) for code in self.codes]
        return Completed(self, model, past, noise, (means[0], means[1]))

    def _means(
        self,
        model: StructuralModel,
        past: Tensor,
        code: float,
        pairs: int,
        generator: torch.Generator,
    ) -> Tensor:
        """Returns the means of the course in an arm given what is known at baseline, (K, N, m)."""
        hold = {self.treatment: Hold(torch.tensor(code, dtype=past.dtype))}
        nodes = sorted({self.treatment, *self.course.nodes})
        total = past.new_zeros(*past.shape[:-1], len(self.course.nodes))
        for _ in range(pairs):
            shape = (*past.shape[:-1], model.noise_width)
            noise = torch.randn(shape, generator=generator, dtype=torch.float64)
            for u in (noise, -noise):
                total += self.scaled(model.complete(past, nodes, u, hold))
        return total / (2 * pairs)

    def scaled(self, values: Tensor) -> Tensor:
        """Returns the course of (…, d) in its own units, or their logarithm, (…, m)."""
        units = [self.schema.columns[i].unit for i in self.course.nodes]
        scale = values.new_tensor([unit.scale for unit in units])
        location = values.new_tensor([unit.location for unit in units])
        return values[..., list(self.course.nodes)] * scale + location

    def compare(self, completed: Completed, outcome: np.ndarray) -> _Analysis:
        """Returns the analysis of a completed outcome, (N,)."""
        return _Analysis(self._design(completed), outcome)

    def _design(self, completed: Completed) -> np.ndarray:
        """Returns one, who is in the first arm, and what is known at baseline, (N, c)."""
        past = completed.past.mean(0)
        columns = [np.ones(len(past)), self.in_first.astype(float)]
        for node in self.adjusted:
            features = self.schema.columns[node].domain.encode(past[:, node])
            columns += list(features.numpy().T)
        return np.stack(columns, 1)


class Completed(NamedTuple):
    """Rows completed by a model, K times, with the means of both arms."""

    trial: Trial
    model: StructuralModel
    past: Tensor
    """(K, N, d) as if lost at random"""
    noise: Tensor
    """(K, N, noise_width) of what comes after the last visit"""
    means: tuple[Tensor, Tensor]
    """(K, N, m) by arm"""

    def outcome(self, regime: str) -> np.ndarray:
        """Returns the outcome in its units under a regime, (K, N)."""
        trial, course = self.trial, self.trial.course
        first = torch.from_numpy(trial.in_first)[:, None]
        own = torch.where(first, *self.means)
        reference = self.means[1]
        last = course.last_seen(trial.observed)
        seen = torch.from_numpy(last >= 0)
        here = torch.from_numpy(course.last_measured(last)).expand(own.shape)
        carried, there = here.clamp(min=0), here >= 0
        borrows = regime in ("J2R", "CIR", "CR")
        stays = seen & (not borrows)
        if regime == "MAR":
            stays = torch.ones_like(seen)
        base = torch.where(stays[:, None], own, reference)
        before = reference if regime == "CR" else own
        after = {
            "MAR": own,
            "J2R": reference,
            "CR": reference,
            "CIR": reference + torch.where(there, (own - reference).gather(-1, carried), 0.0),
            "LMCF": torch.where(there, own.gather(-1, carried), reference),
        }[regime]
        values = self.past.clone()
        arm = trial.values[:, trial.treatment]
        values[..., trial.treatment] = torch.where(stays, arm, trial.codes[1])
        gone = torch.from_numpy(np.array(course.visits) > last[:, None])
        scale = trial.scaled(torch.ones_like(values)) - trial.scaled(torch.zeros_like(values))
        for j, node in enumerate(course.nodes):
            carried_over = values[..., node] + (base - before)[..., j] / scale[..., j]
            drawn = self.model.complete(values, [node], self.noise)[..., node]
            values[..., node] = torch.where(gone[:, j], drawn, carried_over)
        j = course.nodes.index(trial.outcome)
        back = torch.where(gone[:, j], (after - base)[..., j], (before - base)[..., j])
        found = values[..., trial.outcome] + back / scale[..., j]
        return np.stack([trial.schema.columns[trial.outcome].decode(x.numpy()) for x in found])


class _Analysis(NamedTuple):
    """The trial's own analysis: least squares of the outcome on the arm and the baseline."""

    design: np.ndarray
    outcome: np.ndarray

    def coefficients(self, weights: np.ndarray | None = None) -> np.ndarray:
        """Returns the coefficients, (c,)."""
        root = np.ones(len(self.outcome)) if weights is None else np.sqrt(weights)
        found, *_ = np.linalg.lstsq(self.design * root[:, None], self.outcome * root, rcond=None)
        return np.asarray(found)

    def difference(self, weights: np.ndarray | None = None) -> float:
        """Returns the difference of the arms."""
        return float(self.coefficients(weights)[1])

    def means(self) -> tuple[float, float]:
        """Returns the mean of each arm, were it all rows."""
        at = self.design.mean(0)
        level, slope = float(at @ self.coefficients()), self.difference()
        return level + (1.0 - at[1]) * slope, level - at[1] * slope

    @property
    def degrees(self) -> int:
        """How many rows are left beside the coefficients."""
        return len(self.design) - int(np.linalg.matrix_rank(self.design))

    def variance(self) -> float:
        """Returns the squared standard error of the difference, by least squares."""
        left = self.outcome - self.design @ self.coefficients()
        inverse = np.linalg.pinv(self.design.T @ self.design)
        return float(left @ left / self.degrees * inverse[1, 1])


def read_regimes(reference: str | Sequence[str]) -> tuple[str, ...]:
    """Reads the names of regimes."""
    named = [reference] if isinstance(reference, str) else list(reference)
    found = [str(name).upper() for name in named]
    known = get_args(Regime)
    wrong = [name for name, upper in zip(named, found, strict=True) if upper not in known]
    if wrong or not found:
        raise InputError(
            f"reference is a regime of those who left, or a list of them: {listed(known)}; got "
            f"{wrong[0] if wrong else named!r}.",
            about="reference",
        )
    return tuple(dict.fromkeys(found))


def compare_regimes(
    trial: Trial,
    model: StructuralModel,
    regimes: Sequence[str],
    source: Replicates | None,
    *,
    level: float | None,
    draws: int,
    few: int,
    effort: Effort,
    seed: int,
    weights_seed: int,
    rows_of_table: int,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Returns a row a regime, and why there are no intervals.

    Arguments:
        trial: The rows.
        model: The fit.
        regimes: What those who left follow.
        source: Replicates of the fit; None where no interval is asked for.
        level: Of the intervals.
        draws: Completions of each row by the fit.
        few: The same by a replicate.
        effort: How hard to work on what has no closed form.
        seed: Where randomness starts.
        weights_seed: Of the weights of rows that replicates were made with.
        rows_of_table: How many rows the table of the fit has.
    """
    by_fit = trial.complete(model, draws, effort, seed)
    lines = []
    for regime in regimes:
        found = trial.compare(by_fit, by_fit.outcome(regime).mean(0))
        first, second = found.means()
        entry = {"reference": regime, "estimate": found.difference()}
        lines.append({**entry, "mean": first, "mean_versus": second})
    table = pd.DataFrame(lines)
    if source is None or level is None:
        return table, ()
    if source.doubt is not None:
        return table, (f"no interval can be given: {source.doubt}",)
    weights = bootstrap_weights(len(source), rows_of_table, weights_seed).numpy()[:, trial.rows]
    moved: dict[str, list[float]] = {regime: [] for regime in regimes}
    drawn: dict[str, list[tuple[float, float]]] = {regime: [] for regime in regimes}
    for b, other in enumerate(source):
        same = trial.complete(other, few, effort, seed)  # the noise of the fit, for the spread
        own = trial.complete(other, 1, effort, seed, b)  # and its own, for an imputed table
        for regime in regimes:
            mean = trial.compare(same, same.outcome(regime).mean(0))
            moved[regime].append(mean.difference(weights[b]))
            once = trial.compare(own, own.outcome(regime)[0])
            drawn[regime].append((once.difference(), once.variance()))
    kinds: dict[str, list[float]] = {}
    for i, regime in enumerate(regimes):
        estimate = float(table["estimate"].iloc[i])
        degrees = float(trial.compare(by_fit, by_fit.outcome(regime)[0]).degrees)
        one, var = zip(*drawn[regime], strict=True)
        pooled = pool_estimates(list(one), list(var), df_complete=degrees, level=level).table
        error = float(pooled["standard_error"].iloc[0])
        half = float(stdtrit(float(pooled["df"].iloc[0]), 0.5 + level / 2.0)) * error
        _add(kinds, "anchored", estimate, error, half)
        error = float(np.std(moved[regime], ddof=1))
        half = float(stdtrit(min(degrees, len(source) - 1.0), 0.5 + level / 2.0)) * error
        _add(kinds, "frequentist", estimate, error, half)
    return table.assign(**kinds), ()


def _add(kinds: dict[str, list[float]], kind: str, at: float, error: float, half: float) -> None:
    for name, number in (("error", error), ("lower", at - half), ("upper", at + half)):
        kinds.setdefault(f"{kind}_{name}", []).append(number)


def _code(graph: CausalGraph, schema: Schema, arm: Mapping[str, Any], node: int) -> float:
    """Returns the code of an arm."""
    policy = read_policies(arm, graph, schema, 1)[node]
    if not isinstance(policy, Hold):
        raise InputError(
            f"an arm of a trial is a value, such as {{{graph.nodes[node]!r}: 1}}; got "
            f"{written(arm)}."
        )
    return float(policy.value.flatten()[0])
