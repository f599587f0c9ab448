"""Small models of mixed kinds, and their laws by brute force.

The reference lays out the joint law of all nodes on one large table: an axis a node, all values of
a discrete node (counts far beyond their tails) or a fine grid of a continuous one, beside its
point masses. Marginals and posteriors are sums over its axes (the trapezoid rule along grids). It
uses `log_prob` of single mechanisms and nothing else of the engine.
"""

import itertools
import math

import torch
from oracles import LOG_TWO_PI

from misscnf.data import domains as kinds
from misscnf.data.domains import CONTINUOUS
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Count, Gaussian, Semicontinuous, Shape
from misscnf.model import Structure

DOMAINS = {
    "x": CONTINUOUS,
    "b": kinds.Binary(location=0.4, scale=0.49),
    "o": kinds.Ordinal(location=1.1, scale=0.8, levels=3),
    "p": kinds.Ordinal(location=1.5, scale=1.1, levels=4),
    "k": kinds.Categorical(3),
    "l": kinds.Categorical(6),
    "n": kinds.Count(location=2.0, scale=6.0, has_zero=True),
    "m": kinds.Count(location=3.0, scale=6.0),
    "s": kinds.Semicontinuous(0.5, 1.5, (-0.53, 0.37)),
}
"""What the first letter of a node's name says it is."""

COUNTS = 64
"""Values of a count on a table: beyond, these models have less than 1e-13 of their mass."""
REACH, SPACING = 9.0, 0.2
"""Grids of continuous nodes. Their scales are 0.6 and more: the rule errs by less than 1e-12."""

MIXED = {
    "every kind above a number": "b -> x; o -> x; k -> x",
    "a count and a category above numbers": "n -> x1; k -> x1; x1 -> x2",
    "a number above every kind": "x -> b; x -> k; x -> n",
    "a number above an ordinal and its child": "x1 -> o; o -> x2; x1 -> x2; x2 -> k",
    "a chain of numbers and kinds": "x1 -> b; b -> x2; x2 -> o",
    "a count below a number": "x1 -> n; n -> x2; x2 -> k",
    "confounded": "x1 -> b; x1 -> x2; b -> x2; x2 -> o",
    "two components": "b -> x; k -> n",
    "a count above all": "n -> o; n -> x; o -> x; x -> b",
    "point masses above a number": "s -> x; x -> b",
    "point masses below a number": "x1 -> s; s -> x2",
}
DISCRETE_ONLY = {
    "diamond": "k -> n; k -> b; n -> o; b -> o; o -> m; b -> m",
    "counts above": "n -> p; n -> k; p -> b; k -> b; b -> m; k -> m",
    "chain": "b1 -> n; n -> o; o -> k; k -> b2",
    "two counts": "n -> m; m -> b1; n -> b2; b1 -> b2; m -> o",
    "collider": "b1 -> n; k -> n; p -> n; n -> b2",
    "apart": "k1 -> n; n -> b1; k2 -> b2",
}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def mixed_model(text, hidden=(), seed=1):
    """A model with random parameters whose nodes are of the kinds that their names begin with."""
    graph = CausalGraph.read(text)
    structure = Structure.of(graph, [DOMAINS[name[0]] for name in graph.nodes])
    model = structure.build(Shape(hidden=hidden))
    numbers = generator(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            scale = 1.0 / parameter.shape[1] ** 0.5 if parameter.dim() == 2 else 0.5
            parameter.copy_(scale * torch.randn(parameter.shape, generator=numbers))
        for mechanism in model.mechanisms:
            if isinstance(mechanism, Gaussian | Semicontinuous):
                mechanism.log_scale.bias.clamp_(min=math.log(0.6), max=0.0)
            if isinstance(mechanism, Count):
                mechanism.dispersion.fill_(-2.0)
                for parameter in mechanism.location.parameters():
                    parameter.mul_(0.4)
                mechanism.location.bias.add_(0.3)
    return model.requires_grad_(requires_grad=False)


class Reference:
    """The joint law of a small model on one table.

    Arguments:
        model: The structural model.
        held: Nodes without a factor, for interventions.
        counts: How many values of counts the table has.
    """

    def __init__(self, model, held=(), counts=COUNTS):
        self.model, graph = model, model.graph
        domains = [mechanism.domain for mechanism in model.mechanisms]
        points = round(2 * REACH / SPACING) + 1
        grid = torch.linspace(-REACH, REACH, points)
        masses = [torch.tensor(getattr(domain, "atoms", ())) for domain in domains]
        self.axes = [
            torch.arange(float(domain.states or counts))
            if domain.discrete
            else torch.cat([atoms, grid])
            for domain, atoms in zip(domains, masses, strict=True)
        ]
        self.log_step = [
            torch.where(torch.arange(len(axis)) < len(atoms), 0.0, math.log(SPACING))
            * (not domain.discrete)
            for domain, axis, atoms in zip(domains, self.axes, masses, strict=True)
        ]
        sizes = [len(axis) for axis in self.axes]
        self.log_joint = torch.zeros(sizes)
        for i, parents in enumerate(graph.parents):
            if i not in held:
                family = sorted([i, *parents])
                grids = torch.meshgrid(*[self.axes[j] for j in family], indexing="ij")
                at = dict(zip(family, grids, strict=True))
                stacked = [at[j] for j in parents]
                pa = torch.stack(stacked, -1) if parents else torch.zeros(*at[i].shape, 0)
                factor = model.mechanism(i).log_prob(at[i], pa).expand(at[i].shape)
                shape = [size if j in at else 1 for j, size in enumerate(sizes)]
                self.log_joint = self.log_joint + factor.reshape(shape)

    def place(self, x):
        """Returns the nearest places of values (d,) on the axes."""
        return [int((axis - v).abs().argmin()) for axis, v in zip(self.axes, x, strict=True)]

    def snapped(self, values):
        """Returns rows with their values moved to the nearest points of the table."""
        columns = zip(self.axes, values.T, strict=True)
        return torch.stack([a[(a - v[:, None]).abs().argmin(1)] for a, v in columns], 1)

    def posterior(self, x, observed):
        """Returns log p(x_O, hidden) over the axes of all that is not observed."""
        place = self.place(x)
        index = tuple(p if seen else slice(None) for p, seen in zip(place, observed, strict=True))
        steps = [step for step, seen in zip(self.log_step, observed, strict=True) if not seen]
        found = self.log_joint[index]
        for place, step in enumerate(steps):
            found = found + step.reshape([-1 if i == place else 1 for i in range(len(steps))])
        return found

    def log_prob(self, x, observed):
        """Returns log p(x_O) of one row."""
        return torch.logsumexp(self.posterior(x, observed).flatten(), 0)


def all_patterns(d):
    return torch.tensor(list(itertools.product([False, True], repeat=d)))


def rows_of(model, count, seed, clamps=None):
    """Rows drawn from a model."""
    return model.generate(torch.randn(count, model.noise_width, generator=generator(seed)), clamps)


def every_pattern(model, reference, rows, seed=0):
    """Rows of a model on the points of its reference, each under every pattern of holes."""
    d = len(model.graph)
    x = reference.snapped(rows_of(model, rows, seed))
    x, observed = x.repeat_interleave(2**d, 0), all_patterns(d).repeat(rows, 1)
    return torch.where(observed, x, 0.0), observed


def gaussian_parts(model, x):
    """Mean and covariance of the continuous nodes given the discrete values of one row.

    Read off the noise maps, which are linear in continuous parents and noise.
    """
    d = len(model.graph)
    free = [i for i in range(d) if not model.discrete[i]]
    origin = torch.where(torch.tensor(model.discrete), x, 0.0)

    def value(node, row, u):
        parents = row[list(model.graph.parents[node])]
        return model.mechanism(node).generate(torch.tensor(u), parents)

    lines, intercept, scale = torch.zeros(d, d), torch.zeros(d), torch.zeros(d)
    for i in free:
        intercept[i] = value(i, origin, 0.0)
        scale[i] = value(i, origin, 1.0) - intercept[i]
        for j in set(model.graph.parents[i]) & set(free):
            lines[i, j] = value(i, origin + torch.eye(d)[j], 0.0) - intercept[i]
    total = torch.linalg.inv(torch.eye(d) - lines)
    return (total @ intercept)[free], (total @ torch.diag(scale**2) @ total.T)[free][:, free], free


def mixture_log_prob(model, x, observed):
    """log p(x_O) of a linear model without numbers above kinds: a sum over all kinds' states."""
    sizes = [m.domain.states or 90 for m in model.mechanisms if m.domain.discrete]
    where = [i for i, discrete in enumerate(model.discrete) if discrete]
    parts = []
    for state in itertools.product(*[range(size) for size in sizes]):
        if any(observed[i] and x[i] != s for i, s in zip(where, state, strict=True)):
            continue
        row = x.clone()
        row[where] = torch.tensor(state, dtype=row.dtype)
        mean, covariance, free = gaussian_parts(model, row)
        seen = torch.tensor([bool(observed[i]) for i in free])
        away = (row[free] - mean)[seen]
        inside = covariance[seen][:, seen]
        square = away @ torch.linalg.solve(inside, away) if len(away) else 0.0
        log_prob = -0.5 * (square + torch.logdet(inside) + len(away) * LOG_TWO_PI)
        parts.append(log_prob + model.log_factors(row)[where].sum())
    return torch.logsumexp(torch.stack(parts), 0)
