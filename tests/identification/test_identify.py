"""ID and IDC against another program, and against the truth of random worlds of binary columns."""

import itertools
import math

import numpy as np
import pytest

from misscnf.graph import CausalGraph
from misscnf.identification.identify import Conditional, Product, Quotient, Sum, identify
from misscnf.identification.projection import project, shown_graph

# What y0 0.2.11 (`identify_outcomes`) answered for the effect of t on y, on random graphs.
IDENTIFIED = [
    "b -> c, y, a; t -> y, a; c -> y, a; y -> a; a <-> b; a <-> t; b <-> c; b <-> y",
    "c -> t; c -> a; c -> y; t -> a; a -> y; a -> b; a <-> b; b <-> c; b <-> t; c <-> y; t <-> y",
    "c -> t; c -> y; c -> a; t -> y; t -> a; t -> b; y -> a; y -> b; a <-> c; b <-> t; c <-> t",
    "a -> t; a -> c; a -> b; t -> y; t -> c; t -> b; y -> c; y -> b; b <-> c; b <-> y; c <-> y",
    "t -> y; t -> b; y -> c; y -> b; c -> b; c -> a; b -> a; a <-> b; a <-> y; c <-> t",
    "t -> y; t -> b; t -> a; y -> b; y -> a; c -> b; b -> a; a <-> y; b <-> c; b <-> t",
    "c -> a; c -> b; t -> y; a -> y; a <-> b; a <-> y; b <-> t; b <-> y; c <-> y",
    "t -> c; t -> b; t -> a; c -> y; b -> a; a <-> t; a <-> y; b <-> c; t <-> y",
    "c -> y; a -> t; a -> y; b -> t; t -> y; a <-> b; a <-> c; b <-> c; b <-> t",
    "c -> a; c -> t; a -> b; t -> b; t -> y; b -> y; a <-> t; b <-> y; c <-> y",
    "t -> c; t -> a; t -> y; b -> c; b -> a; c -> a; a -> y; a <-> y; b <-> t",
    "t -> b; a -> c; b -> y; y -> c; a <-> b; a <-> c; b <-> c; b <-> y",
    "c -> t; b -> a; t -> y; t -> a; a <-> c; b <-> t; b <-> y; c <-> t",
    "c -> t; b -> t; b -> y; t -> y; a <-> b; a <-> t; a <-> y; c <-> y",
    "t -> a; t -> c; c -> b; b -> y; a <-> c; b <-> t; b <-> y; t <-> y",
    "b -> c; c -> y; c -> a; t -> y; a <-> b; a <-> t; b <-> y; c <-> t",
    "t -> c; t -> y; t -> b; c -> b; y -> b; b <-> y; c <-> t; c <-> y",
    "b -> t; b -> a; b -> c; t -> y; t -> a; a <-> c; a <-> t; a <-> y",
    "c -> a; c -> t; b -> t; a -> y; t -> y; a <-> t; b <-> t; c <-> y",
    "a -> c; a -> y; a -> b; c -> y; t -> y; t -> b; a <-> c; b <-> c",
]
NOT_IDENTIFIED = [
    "a -> b, c, t, y; b -> y; c -> t, y; t -> y; a <-> c; a <-> y; b <-> y; c <-> y; t <-> y",
    "c -> t, b, a; t -> y; y -> b; b -> a; a <-> b; a <-> t; b <-> t; c <-> t; c <-> y; t <-> y",
    "t -> a, b; a -> y, c, b; c -> b; a <-> b; a <-> t; a <-> y; b <-> c; b <-> t; t <-> y",
    "t -> c, b, y; c -> a; b -> y, a; a <-> b; a <-> y; b <-> c; c <-> t; c <-> y; t <-> y",
    "t -> c, b, y; a -> c, b; c -> b, y; b -> y; a <-> b; a <-> c; a <-> y; b <-> t",
    "a -> b, c, t, y; b -> c, y; c -> t; t -> y; a <-> y; b <-> c; b <-> y; t <-> y",
    "a -> t, c; t -> c, b, y; c -> b, y; b -> y; a <-> c; b <-> t; c <-> t; c <-> y",
    "t -> y; t -> b; c -> a; y -> b; y -> a; a <-> b; a <-> c; a <-> t; a <-> y; b <-> t; t <-> y",
    "c -> t; b -> a; b -> t; b -> y; a -> y; t -> y; a <-> b; a <-> t; a <-> y; b <-> t; b <-> y",
    "a -> t; t -> c; t -> y; t -> b; c -> y; c -> b; y -> b; a <-> t; b <-> c; b <-> t; c <-> t",
    "c -> a; t -> y; y -> a; a -> b; a <-> c; a <-> t; a <-> y; b <-> c; b <-> y; t <-> y",
    "t -> b; t -> y; a -> b; a -> c; a -> y; a <-> t; a <-> y; b <-> c; b <-> y; t <-> y",
    "t -> y; t -> b; y -> b; c -> a; a -> b; a <-> b; a <-> t; a <-> y; c <-> t; t <-> y",
    "a -> c; a -> y; a -> b; t -> y; y -> b; b <-> t; b <-> y; c <-> t; c <-> y; t <-> y",
    "a -> t; a -> c; a -> y; t -> y; c -> y; a <-> c; a <-> t; a <-> y; c <-> t; c <-> y",
    "t -> a; t -> b; c -> a; c -> y; a -> y; a <-> c; b <-> t; c <-> t; c <-> y; t <-> y",
    "b -> a; b -> y; c -> y; t -> y; a -> y; a <-> b; a <-> y; b <-> t; b <-> y; c <-> t",
    "b -> y; t -> c; t -> y; a -> c; a -> y; a <-> t; a <-> y; b <-> c; b <-> t; b <-> y",
    "a -> t; a -> c; t -> y; t -> c; b -> y; b -> c; a <-> b; b <-> y; c <-> y; t <-> y",
]


@pytest.mark.parametrize(
    ("text", "known"),
    [(text, True) for text in IDENTIFIED] + [(text, False) for text in NOT_IDENTIFIED],
)
def test_answers_are_those_of_y0(text, known):
    found = identify(project(CausalGraph.read(text)), ["y"], ["t"])
    assert (found is not None) == known


class World:
    """A structural model of binary nodes, by its joint law: one axis a node."""

    def __init__(self, graph, seed):
        rng, size = np.random.default_rng(seed), len(graph)
        self.graph, self.factors = graph, []
        for i, parents in enumerate(graph.parents):
            chance = rng.uniform(0.1, 0.9, [2] * len(parents))
            table = np.stack([1.0 - chance, chance], -1)
            axes = [slice(None) if j in (*parents, i) else None for j in range(size)]
            self.factors.append(table[tuple(axes)])

    def law(self, held=()):
        """The joint law of all nodes; those that are held have no factor."""
        found = np.ones([2] * len(self.graph))
        for i, factor in enumerate(self.factors):
            if self.graph.nodes[i] not in held:
                found = found * factor
        return found

    def shown(self, held=()):
        hidden = tuple(self.graph.latent_nodes)
        return self.law(held).sum(hidden)


def evaluate(expression, joint, nodes):
    """The number that an expression is, at all values of the nodes."""
    if isinstance(expression, Conditional):
        given = [nodes.index(name) for name in expression.given]
        both = [*given, nodes.index(expression.of)]
        rest = tuple(i for i in range(len(nodes)) if i not in both)
        outside = tuple(i for i in range(len(nodes)) if i not in given)
        return joint.sum(rest, keepdims=True) / joint.sum(outside, keepdims=True)
    if isinstance(expression, Product):
        return math.prod((evaluate(p, joint, nodes) for p in expression.parts), start=1.0)
    if isinstance(expression, Quotient):
        return evaluate(expression.top, joint, nodes) / evaluate(expression.bottom, joint, nodes)
    assert isinstance(expression, Sum)
    inner = np.asarray(evaluate(expression.of, joint, nodes))
    axes = tuple(nodes.index(name) for name in expression.over)
    return np.broadcast_to(inner, joint.shape).sum(axes, keepdims=True)


@pytest.mark.parametrize("text", IDENTIFIED)
def test_a_formula_is_the_law_under_the_intervention(text):
    graph = CausalGraph.read(text)
    mixed, world = project(graph), World(graph, seed=len(text))
    formula = identify(mixed, ["y"], ["t"])
    t, y = mixed.nodes.index("t"), mixed.nodes.index("y")
    rest = tuple(i for i in range(len(mixed.nodes)) if i not in (t, y))
    truth = world.shown(held=["t"]).sum(rest)  # at both values of t
    found = np.asarray(evaluate(formula, world.shown(), list(mixed.nodes)))
    found = np.broadcast_to(found, world.shown().shape)
    for other in itertools.product(*[range(2)] * len(rest)):  # it is the same whatever these are
        at = dict(zip(rest, other, strict=True))
        index = tuple(at.get(i, slice(None)) for i in range(found.ndim))
        np.testing.assert_allclose(found[index], truth, atol=1e-12)


def test_conditions_that_act_like_interventions():
    """P(y | do(t), z) of a front door: z = m acts like do(m)."""
    graph = CausalGraph.read("t -> m -> y; t <-> y")
    mixed, world = project(graph), World(graph, seed=1)
    formula = identify(mixed, ["y"], ["t"], ["m"])
    joint = world.shown(held=["t"])  # (t, m, y)
    truth = joint / joint.sum(mixed.nodes.index("y"), keepdims=True)
    found = np.asarray(evaluate(formula, world.shown(), list(mixed.nodes)))
    np.testing.assert_allclose(np.broadcast_to(found, truth.shape), truth, atol=1e-12)


def test_conditions_that_spoil_an_effect():
    """A collider of the hidden cause: P(y | do(t)) is there, P(y | do(t), c) is not."""
    mixed = project(CausalGraph.read("t -> y; t <-> c; y <-> c; t -> c"))
    assert identify(mixed, ["y"], ["t"]) is not None
    assert identify(mixed, ["y"], ["t"], ["c"]) is None


@pytest.mark.parametrize("text", IDENTIFIED[:8] + NOT_IDENTIFIED[:8])
def test_pillows_claim_nothing_that_hidden_causes_break(text):
    """The law of what is shown is the product of the laws given pillows."""
    graph = CausalGraph.read(text)
    law, found = World(graph, seed=3).shown(), shown_graph(graph)
    product = np.ones([2] * len(found))
    nodes = list(project(graph).nodes)
    for node in nodes:
        product = product * evaluate(Conditional(node, found.parents_of(node)), law, nodes)
    np.testing.assert_allclose(product, law, atol=1e-12)


def test_hidden_nodes_pass_arrows_on():
    graph = CausalGraph.read("a -> u -> b; u -> c; v -> u", latent=["u", "v"])
    mixed = project(graph)
    assert mixed.arrows == {("a", "b"), ("a", "c")}
    assert mixed.ties == {frozenset("bc")}
