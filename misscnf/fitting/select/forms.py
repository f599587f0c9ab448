r"""The ladder: how rich a mechanism each node gets, and how it earns it.

    x = m(x_pa) + s(x_pa) · h(u):    m a line, a curve or a network,
                                     s a constant or a network,
                                     h the identity or a monotone spline.

Everything starts as the linear model. First every node asks for a network of the mean (or of the
logits, where it is discrete); where a curve of few basis functions does as well, it gets that
(`curves`). Once these are trained, nodes whose noise looks odd (`noise`) ask for a network of the
scale, for a spline, or for both. Rows that were left out decide each time (`crossfit`), a richer
form having to beat a plainer one by 1.5 standard errors, or by 2.5 where another that could see as
much does not. Of noise only rows that show the node itself can tell: where it is inferred from a
child, odd noise and a wrong curve of the child look alike.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from misscnf.data.domains import CONTINUOUS, Domain
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.select.crossfit import COMPLETIONS, Folds, cross_fit, some_rows
from misscnf.fitting.select.noise import noise_p_values
from misscnf.fitting.settings import Settings, Shape
from misscnf.fitting.solve.noise_spline import fit_noise_splines
from misscnf.fitting.solve.simplified_newton import maximise_lines
from misscnf.fitting.train.ensemble import EpochWatcher
from misscnf.graph import CausalGraph
from misscnf.model import StructuralModel
from misscnf.options import from_dict, to_dict

__all__ = [
    "ERRORS_TO_BEAT",
    "ERRORS_ALONE",
    "Form",
    "Pair",
    "build_model",
    "choose_means",
    "choose_noise",
]

ERRORS_TO_BEAT, ERRORS_ALONE = 1.5, 2.5
"""Standard errors by which a mean must beat the line: one that both a network and a curve ask for,
and one that only one of the two asks for, in tables long enough for both to see it."""
ERRORS_OF_NOISE = 2.5
"""Of three richer noises one wins by luck more often, and trains everything once more."""
ODD = 1e-3
"""How unlikely the noise of a node must be to ask for a richer one. A false alarm costs time only.
They are more than one in a thousand in tables of a few hundred rows, and where a node is inferred
from a child: a child's curve that is a little off looks like odd noise of the parent."""
SCALE_HIDDEN = (32, 32)
NOISE_STEPS = 120
"""The law of one number given few others is learned sooner than a curve."""
JUDGE_HIDDEN = (32, 32, 32)
"""Hidden widths of the networks that stand for curves in the choice; those that are kept may be
larger."""
LINE = Shape(hidden=())

Pair = tuple[Tensor, Tensor]
"""Values (N, d), with finite numbers in the holes, and observed (N, d)."""


@dataclass(frozen=True)
class Form:
    """How rich the mechanism of a node is."""

    mean: bool = False
    """whether a network sets the mean, or the logits"""
    scale: bool = False
    """whether a network sets the scale"""
    noise: bool = False
    """whether the noise is bent by a spline"""
    curve: tuple[int, ...] | None = None
    """centres, products and basis functions, where a curve sets the mean"""

    def shape(self, full: Shape) -> Shape:
        """Returns the shape of the mechanism, given that of a node with a network."""
        shape = full if self.mean else replace(full, hidden=(), scale_hidden=None)
        if self.curve:
            shape = replace(shape, curve=self.curve)
        if self.scale:
            shape = replace(shape, scale_hidden=SCALE_HIDDEN)
        return replace(shape, kind="spline") if self.noise else shape

    @property
    def name(self) -> str:
        """The form in words, such as "network, spline noise"."""
        words = ["network" if self.mean else "curve" if self.curve else "line"]
        return ", ".join(words + ["network scale"] * self.scale + ["spline noise"] * self.noise)

    def __str__(self) -> str:
        return self.name

    @property
    def richness(self) -> Literal["linear", "curve", "network"]:
        """In one word; networks and splines are both fitted by training."""
        if self.mean or self.scale or self.noise:
            return "network"
        return "curve" if self.curve else "linear"

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        return to_dict(self)

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Form:
        """Reads what `to_dict` wrote."""
        return from_dict(cls, entry)


def build_model(
    graph: CausalGraph,
    domains: Sequence[Domain],
    shapes: Shape | Sequence[Shape],
    start: StructuralModel | None = None,
    seed: int | None = None,
) -> StructuralModel:
    """Makes a model, with the parameters of a simpler one where it has the same.

    Arguments:
        graph: The causal graph.
        domains: The domain of each node.
        shapes: The shape of its mechanisms, of all or of each.
        start: The simpler model, or None.
        seed: Where the hidden layers come from; None leaves them zero.
    """
    shapes = [shapes] * len(graph) if isinstance(shapes, Shape) else shapes
    model = StructuralModel(
        graph,
        [
            shape.build([domains[j] for j in parents], domain)
            for shape, parents, domain in zip(shapes, graph.parents, domains, strict=True)
        ],
    )
    if seed is not None:
        model.initialise(derive_generator(seed, "initialise"))
    if start is not None:
        for i in range(len(graph)):
            model.mechanism(i).start_from(start.mechanism(i))
    return model


def choose_means(
    line: StructuralModel,
    domains: Sequence[Domain],
    rows: Pair,
    settings: Settings,
    seed: int,
    watch: EpochWatcher | None = None,
) -> tuple[dict[int, ElpdDifference], dict[str, Any]]:
    """Returns the nodes that earn a network with its gain over the line, and those of all nodes.

    Completions by the line favour the line a little where much is hidden; completions by a
    network would favour that network, and cost a fit.

    Arguments:
        line: The linear fit to all rows.
        domains: The domain of each node.
        rows: All rows.
        settings: How networks are shaped and trained.
        seed: Where randomness starts.
        watch: Called after each epoch.
    """
    graph, rows = line.graph, some_rows(rows, seed)
    generator = derive_generator(seed, "fold rows")
    completions = Completions.draw(line, *rows, COMPLETIONS, generator)
    folds = Folds.of(len(completions), seed)
    lines = maximise_lines(line, completions, folds.weights())
    shape = replace(settings.shape, hidden=JUDGE_HIDDEN)
    starts = [
        build_model(graph, domains, shape, its_line, seed + fold)
        for fold, its_line in enumerate(lines)
    ]
    every = frozenset(i for i, parents in enumerate(graph.parents) if parents)
    crossed = cross_fit(completions, folds, starts, lines, every, settings, seed, watch)
    nodes = crossed.choose(ERRORS_TO_BEAT)
    elpd_difference = crossed.elpd_difference(nodes or every, frozenset())
    by_node = {i: crossed.elpd_difference(nodes | {i}, nodes - {i}) for i in sorted(every)}
    return {i: by_node[i] for i in sorted(nodes)}, {
        **elpd_difference.to_dict(),
        "nodes": {graph.nodes[i]: found.to_dict() for i, found in by_node.items()},
    }


def choose_noise(
    model: StructuralModel,
    domains: Sequence[Domain],
    rows: Pair,
    settings: Settings,
    seed: int,
    watch: EpochWatcher | None = None,
) -> dict[int, Form]:
    """Returns the nodes that earn a richer noise, and which.

    Arguments:
        model: The fit with normal noise of constant scale in continuous nodes.
        domains: The domain of each node.
        rows: All rows.
        settings: How networks are shaped and trained.
        seed: Where randomness starts.
        watch: Called after each epoch.
    """
    rows = some_rows(rows, seed)
    generator = derive_generator(seed, "noise rows")
    completions = Completions.draw(model, *rows, COMPLETIONS, generator)
    odd = [i for i, p in noise_p_values(model, completions).items() if p < ODD]
    if not odd:
        return {}
    noise, folds = completions.of_noise(model, odd), Folds.of(len(completions), seed)
    elpd_differences: dict[Form, dict[int, Tensor]] = {}
    for form in (Form(scale=True), Form(noise=True), Form(scale=True, noise=True)):
        nodes = frozenset(i for i in odd if model.graph.parents[i] or not form.scale)
        if not nodes:
            continue
        starts = [_noise_model(model, domains, nodes, form, seed + f) for f in range(folds.count)]
        for start, weights in zip(starts, folds.weights(), strict=True):
            fit_noise_splines(start.double(), noise, weights)
        plain = [_noise_model(model, domains, nodes, Form()).double()] * folds.count
        crossed = cross_fit(
            noise, folds, starts, plain, nodes, settings, seed, watch, only=True, steps=NOISE_STEPS
        )
        base = crossed.log_prob(frozenset())
        elpd_differences[form] = {
            i: (crossed.log_prob(frozenset({i})) - base)[rows[1][:, i]] for i in nodes
        }
    return {i: form for i in odd if (form := _best_form(elpd_differences, i)) != Form()}


def _noise_model(
    model: StructuralModel,
    domains: Sequence[Domain],
    nodes: Collection[int],
    form: Form,
    seed: int | None = None,
) -> StructuralModel:
    """Returns laws of the noise of some nodes given their parents, at first standard normal."""
    # Copies, because what is trained goes to single precision: the fit must not go with it.
    mechanisms = [copy.deepcopy(model.mechanism(i)) for i in range(len(model.graph))]
    for i in nodes:
        parents = [domains[j] for j in model.graph.parents[i]]
        mechanisms[i] = form.shape(LINE).build(parents, CONTINUOUS)
        if seed is not None:
            mechanisms[i].initialise(derive_generator(seed, "noise", i))
    return StructuralModel(model.graph, mechanisms)


def _best_form(elpd_differences: Mapping[Form, Mapping[int, Tensor]], node: int) -> Form:
    """Returns the highest form that beats those below it."""
    mine = {
        form: of_nodes[node] for form, of_nodes in elpd_differences.items() if node in of_nodes
    }
    both = [form for form in mine if form.scale and form.noise]
    either = max((form for form in mine if form not in both), key=lambda r: float(mine[r].mean()))
    best, held = Form(), torch.zeros_like(mine[either])
    for form in [either, *both]:
        elpd_difference = mine[form]
        if ElpdDifference.of(elpd_difference - held).ratio > ERRORS_OF_NOISE:
            best, held = form, elpd_difference
    return best
