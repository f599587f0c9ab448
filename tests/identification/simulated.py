"""Tables whose holes are known: what a report says about them can be checked."""

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit

from misscnf.graph import CausalGraph
from misscnf.identification.independences import Contradiction, leaned_on

SHAPES = ("tail", "middle", "level", "bystander", "corner")


def random_table(seed, strength=None):
    """Returns a graph, a table of MCAR or MAR holes, its values, and each cell's chance.

    Rates go to 60 %. Under MAR, loss hangs on roots (or, with a strength, on any one or two
    columns, which are always seen), by weights of either sign.
    """
    rng = np.random.default_rng([seed, 0 if strength is None else 1])
    graph = random_graph(rng, int(rng.integers(3, 10)))
    values = random_values(rng, graph, int(rng.choice([1000, 2000, 5000, 20000])))
    always = []
    if rng.random() < 0.6:
        always = list(graph.roots)
        if strength is not None:
            always = rng.choice(len(graph), int(rng.integers(1, 3)), replace=False).tolist()
    chances = cell_chances(rng, values, always, strength or 1.0)
    holes = rng.random(values.shape) >= chances
    holes[:3] = False  # each column shows something
    table = pd.DataFrame(np.where(holes, np.nan, values), columns=list(graph.nodes))
    return graph, table, values, chances


def random_graph(rng, nodes):
    names = [f"x{i}" for i in range(nodes)]
    share = rng.uniform(1.0, 4.0) / nodes
    edges = [(names[j], names[i]) for i in range(nodes) for j in range(i) if rng.random() < share]
    return CausalGraph.from_edges(edges, nodes=names)


def random_values(rng, graph, rows):
    """Linear or bent mechanisms with random weights, (N, d)."""
    values = np.zeros((rows, len(graph)))
    for i, parents in enumerate(graph.parents):
        total = rng.normal(size=rows)
        for j in parents:
            z = (values[:, j] - values[:, j].mean()) / values[:, j].std()
            bent = z if rng.random() < 0.6 else np.tanh(z) + z**2 / 2
            total += rng.uniform(0.3, 1.5) * rng.choice([-1, 1]) * bent
        values[:, i] = total
    return values


def cell_chances(rng, values, always, strength):
    """The chance of each cell to be seen, (N, d): logistic in the columns that always are."""
    z = (values - values.mean(axis=0)) / values.std(axis=0)
    chances = np.ones(values.shape)
    for i in range(values.shape[1]):
        if i not in always:
            rate = rng.uniform(0.1, 0.6)
            score = strength * (z[:, always] @ rng.normal(size=len(always)))
            shift = brentq(lambda b, s=score, r=rate: expit(s + b).mean() - r, -90, 90)
            chances[:, i] = 1.0 - expit(score + shift)
    return chances


def true_chance(graph, values, chances, line):
    """The mean chance to see a family whole over the rows of a region, a line of `regions`."""
    family = [graph.index(name) for name in line.family]
    whole = chances[:, family].prod(axis=1)
    inside = np.ones(len(values), dtype=bool)
    for condition in line.conditions:
        x = values[:, graph.index(condition["column"])]
        inside &= x >= (-np.inf if condition["low"] is None else condition["low"])
        inside &= x <= (np.inf if condition["high"] is None else condition["high"])
    return whole[inside].mean()


def false_regions(report, graph, values, chances):
    """The flagged regions where the true chance is above 2 %."""
    flagged = report.regions[report.regions["flagged"]]
    lines = list(flagged.itertuples())
    return [line for line in lines if true_chance(graph, values, chances, line) > 0.02]


def table_with_a_region(seed, shape="tail", rows=5000, share=0.05, rate=0.3, hidden=0.0):
    """Returns a graph, a table, and the rows of a region where y is never seen.

    Elsewhere y is lost at a rate, and the numbers that make the region are hidden at another.
    """
    rng = np.random.default_rng([seed, SHAPES.index(shape)])
    a, z = rng.normal(size=(2, rows))
    sex = (rng.random(rows) < (share if shape == "level" else 0.5)).astype(float)
    t = 0.7 * a + 0.5 * z + rng.normal(size=rows)
    y = 0.5 * a - 0.8 * t + 0.4 * sex + rng.normal(size=rows)
    ranks = {name: v.argsort().argsort() / rows for name, v in (("t", t), ("z", z))}
    region = {
        "tail": ranks["t"] >= 1.0 - share,
        "middle": (ranks["t"] >= 0.4) & (ranks["t"] < 0.4 + share),
        "level": sex == 1.0,
        "bystander": ranks["z"] < share,
        "corner": (ranks["t"] >= 1.0 - 2.0 * share) & (sex == 1.0),
    }[shape]
    table = pd.DataFrame({"a": a, "z": z, "sex": sex, "t": t, "y": y})
    table.loc[region | (rng.random(rows) < rate), "y"] = np.nan
    name = {"tail": "t", "middle": "t", "bystander": "z"}.get(shape)
    if name is not None:
        table.loc[rng.random(rows) < hidden, name] = np.nan
    graph = CausalGraph.read("a -> t; z -> t; a -> y; t -> y; sex -> y")
    return graph, table, region


def finds_the_region(report, table, region):
    """Whether one flagged region of y has four fifths of its rows in common with the truth."""
    flagged = report.regions[report.regions["flagged"] & (report.regions["node"] == "y")]
    for conditions in flagged["conditions"]:
        inside, shown = np.ones((2, len(table)), dtype=bool)
        for condition in conditions:
            x = table[condition["column"]].to_numpy()
            shown &= ~np.isnan(x)
            if "levels" in condition:
                inside &= np.isin(x, [float(level) for level in condition["levels"]])
            else:
                inside &= x >= (-np.inf if condition["low"] is None else condition["low"])
                inside &= x <= (np.inf if condition["high"] is None else condition["high"])
        inside &= shown
        if (inside & region).sum() >= 0.8 * (inside | (region & shown)).sum():
            return True
    return False


def mcar_normal_table(seed, rows, columns, correlation, rate):
    """Equally correlated normal columns with holes at random, (N, d) NaN in the holes."""
    rng = np.random.default_rng([seed, rows, columns])
    covariance = np.full((columns, columns), correlation) + (1 - correlation) * np.eye(columns)
    values = rng.normal(size=(rows, columns)) @ np.linalg.cholesky(covariance).T
    values[rng.random(values.shape) < rate] = np.nan
    return values


def mixed_table(seed, *, wrong=False):
    """Returns a graph, an effect (t, y), a table with holes, and the arrow that was left out.

    4 to 10 columns: numbers with normal, skewed or heavy-tailed noise, binary ones, counts and
    levels without order. Mechanisms are lines, bends and products of parents. Half of the columns
    are lost at random, at rates to 50 %, depending on one or two columns that are always seen, the
    outcome among them. If wrong, the graph lacks one arrow between columns that the effect needs.
    """
    rng = np.random.default_rng([seed, 2])
    arrows = []
    while not arrows:
        graph = random_graph(rng, int(rng.integers(4, 11)))
        names = graph.nodes
        effect = names[int(rng.integers(0, len(graph) - 1))], names[-1]
        arrows = [edge for edge in graph.edges if _leans(graph, effect, edge)]
    values = mixed_values(rng, graph, int(rng.choice([500, 1000, 2000, 5000])))
    always = rng.choice(len(graph), int(rng.integers(1, 3)), replace=False).tolist()
    chances = cell_chances(rng, values, always, 1.0)
    chances[:, rng.choice(len(graph), len(graph) // 2, replace=False)] = 1.0
    table = pd.DataFrame(values, columns=list(names))
    table = table.mask(rng.random(values.shape) >= chances)
    if not wrong:
        return graph, effect, table, None
    dropped = arrows[int(rng.integers(len(arrows)))]
    return _without(graph, dropped), effect, table, dropped


def _without(graph, dropped):
    return CausalGraph.from_edges([e for e in graph.edges if e != dropped], graph.nodes)


def _leans(graph, effect, arrow):
    """Whether the effect leans on the independence that leaving an arrow out would claim."""
    cause, node = arrow
    if arrow == effect or node == effect[0]:
        return False
    without = _without(graph, arrow)
    claim = Contradiction(node, cause, without.parents_of(node), 1.0, 0.0, 0)
    return bool(leaned_on(without, effect, [claim], holed=graph.nodes))


def mixed_values(rng, graph, rows):
    """Numbers, binary columns, counts and codes of three levels, (N, d)."""
    values = np.zeros((rows, len(graph)))
    for i, parents in enumerate(graph.parents):
        z = [_standard(values[:, j]) for j in parents]
        total = np.zeros(rows)
        for part in z:
            bend = rng.choice(["line", "square", "wave", "step"])
            bent = {
                "line": part,
                "square": np.tanh(part) + part**2 / 2,
                "wave": np.sin(2 * part),
                "step": np.where(part > 0.3, 1.0, -0.5),
            }[bend]
            total += rng.uniform(0.4, 1.2) * rng.choice([-1, 1]) * bent
        if len(z) >= 2 and rng.random() < 0.5:
            total += rng.uniform(0.3, 0.8) * z[0] * z[1]
        kind = rng.choice(["number", "number", "binary", "count", "levels"])
        noise = rng.choice(["normal", "skewed", "heavy"])
        if kind == "number":
            drawn = {
                "normal": rng.normal(size=rows),
                "skewed": rng.exponential(size=rows),
                "heavy": rng.standard_t(3, size=rows),
            }[noise]
            values[:, i] = total + drawn
        elif kind == "binary":
            values[:, i] = rng.random(rows) < expit(1.5 * total)
        elif kind == "count":
            values[:, i] = rng.poisson(np.exp(np.clip(0.5 * total + 0.5, -3, 3)))
        else:
            logits = np.column_stack([np.zeros(rows), total, -total + 0.3])
            values[:, i] = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return values


def _standard(x):
    return np.clip((x - x.mean()) / x.std(), -4, 4)
