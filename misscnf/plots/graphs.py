"""The graph: causes above effects, tinted by how often a family is seen whole.

A sparse graph is drawn in layers, each node below all its causes. One with many edges would be a
ball of wool that way: it is drawn as a list in causal order, with an arc from each cause down to
each effect.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from misscnf.display.style import STYLE
from misscnf.graph import CausalGraph
from misscnf.plots.canvas import canvas, short
from misscnf.plots.holes import Holes

__all__ = ["draw_nodes", "graph", "sheet_height"]

_Pair = tuple[float, float]
_Look = dict[str, Any]


def graph(
    found: CausalGraph | Holes, *, asked: Collection[str] = (), ax: Axes | None = None
) -> Axes:
    """Draws a graph, each node with the share of rows that show it with its parents.

    Arguments:
        found: A `CausalGraph`, drawn without shares; or what `check` returns.
        asked: Nodes with a heavy frame, such as treatment and outcome.
        ax: Axes to draw into; None makes a figure.

    Returns:
        The axes.

    Example:
        >>> from misscnf import CausalGraph, plots
        >>> ax = plots.graph(CausalGraph.read("age -> dose -> days"), asked=["dose", "days"])
        >>> sorted(text.get_text() for text in ax.texts)
        ['age', 'days', 'dose']
    """
    if isinstance(found, CausalGraph):
        shown = found.without_auxiliary()
        shares: dict[str, float | None] = dict.fromkeys(shown.nodes)
        uncovered: Collection[str] = ()
    else:
        shown, uncovered = found.graph.without_auxiliary(), found.uncovered
        whole = dict(zip(found.nodes["node"], found.nodes["rows whole"] / found.rows, strict=True))
        shares = {name: whole.get(name) for name in shown.nodes}
    with canvas(ax, STYLE.wide, sheet_height(shown)) as drawn:
        draw_nodes(drawn, shown, shares, uncovered, asked)
    return drawn


def sheet_height(graph: CausalGraph) -> float:
    """Returns how many inches high the drawing of a graph is; its width is `STYLE.wide`."""
    layers = _layers(graph)
    return 0.85 * len(layers) if _layered(graph, layers) else 0.34 * len(graph) + 0.1


def draw_nodes(
    ax: Axes,
    graph: CausalGraph,
    shares: Mapping[str, float | None],
    uncovered: Collection[str],
    asked: Collection[str],
) -> None:
    """Draws a graph into axes, which become a sheet that is measured in inches.

    A share that is not a number is that of a hidden cause, one that is None is not shown.
    Families that are not covered have an orange frame, treatment and outcome a heavy one.
    """
    look = {
        name: _look(shares[name], flagged=name in uncovered, asked=name in asked)
        for name in graph.nodes
    }
    ax.set_axis_off()
    ax.set_xlim(0.0, STYLE.wide)
    ax.set_ylim(0.0, sheet_height(graph))
    layers = _layers(graph)
    if _layered(graph, layers):
        _draw_layers(ax, graph, layers, shares, look)
    else:
        _draw_list(ax, graph, shares, look)


def _layered(graph: CausalGraph, layers: list[list[str]]) -> bool:
    """Whether layers can be read: in others arrows cross, or boxes are too narrow for names."""
    return len(graph.edges) <= 2 * len(graph) and max(map(len, layers)) <= 4


def _shade(colours: tuple[str, str, str], share: float | None) -> str:
    if share is None:
        return colours[1]
    if math.isnan(share):
        return STYLE.rule
    return to_hex(LinearSegmentedColormap.from_list("coverage", list(colours))(share))


def _percent(share: float | None) -> str:
    if share is None:
        return ""
    return "hidden" if math.isnan(share) else f"{100 * share:.0f} %"


def _look(share: float | None, *, flagged: bool, asked: bool) -> _Look:
    return {
        "facecolor": _shade(STYLE.tints, share),
        "edgecolor": STYLE.orange if flagged else STYLE.ink if asked else STYLE.soft,
        "linestyle": (0, (3, 1.5)) if flagged else "-",
        "linewidth": 1.8 if flagged or asked else 0.8,
    }


# ------------------------------------------------------------------------------------- layers


def _layers(graph: CausalGraph) -> list[list[str]]:
    """Returns the nodes by generation, those with near causes near one another."""
    layers = [list(layer) for layer in nx.topological_generations(graph.to_networkx())]
    place: dict[str, float] = {}

    def near(name: str) -> tuple[float, int]:
        above = [place[parent] for parent in graph.parents_of(name)]
        return float(np.mean(above or [0.0])), graph.index(name)

    for layer in layers:
        layer.sort(key=near)
        place |= {name: i - (len(layer) - 1) / 2 for i, name in enumerate(layer)}
    return layers


def _draw_layers(
    ax: Axes,
    graph: CausalGraph,
    layers: list[list[str]],
    shares: Mapping[str, float | None],
    look: Mapping[str, _Look],
) -> None:
    centred: _Look = {"ha": "center", "va": "center", "zorder": 4}
    boxes: dict[str, FancyBboxPatch] = {}
    middles: dict[str, _Pair] = {}
    for level, layer in enumerate(layers):
        step = STYLE.wide / len(layer)
        for i, name in enumerate(layer):
            x, y = middles[name] = (i + 0.5) * step, 0.85 * (len(layers) - level - 0.5)
            width = min(0.25 + 0.085 * max(len(name), 6), 1.6, step - 0.1)
            own = {**look[name], "zorder": 3}
            boxes[name] = _box(ax, (x - width / 2, y), (width, 0.36), 0.07, own)
            letters = short(name, 16 if len(layer) < 4 else 12)
            told = _percent(shares[name])
            ax.text(x, y + 0.075 * bool(told), letters, fontsize=8.5, **centred)
            if told:
                ax.text(x, y - 0.085, told, fontsize=7.5, **centred)
    for cause, effect in graph.edges:
        others = [box for name, box in boxes.items() if name not in (cause, effect)]
        curvature = _least_curvature(middles[cause], middles[effect], others)
        ax.add_patch(
            FancyArrowPatch(
                middles[cause],
                middles[effect],
                patchA=boxes[cause],
                patchB=boxes[effect],
                shrinkA=0.0,
                shrinkB=1.0,
                connectionstyle=f"arc3,rad={curvature}",
                arrowstyle="-|>,head_length=4,head_width=2.2",
                color=_shade(STYLE.strokes, shares[effect]),
                linewidth=1.2,
                zorder=2,
            )
        )


def _least_curvature(start: _Pair, end: _Pair, boxes: list[FancyBboxPatch]) -> float:
    """Returns the smallest curvature of an arrow that meets no box, or the one that meets least.

    An arrow of matplotlib's arc3 is a parabola whose control point lies beside the middle.
    """
    t = np.linspace(0.0, 1.0, 60)[:, None]
    a, b = np.array(start), np.array(end)
    across = np.array([b[1] - a[1], a[0] - b[0]])

    def met(curvature: float) -> float:
        control = (a + b) / 2 + curvature * across
        points = (1 - t) ** 2 * a + 2 * t * (1 - t) * control + t**2 * b
        outside = (points[:, 0] < 0.05) | (points[:, 0] > STYLE.wide - 0.05)
        hits = sum(_near(box, points).sum() for box in boxes) + 3 * outside.sum()
        return float(hits) + abs(curvature)

    sizes = (0.12, 0.25, 0.4, 0.55, 0.75, 1.0)
    return min([0.0, *(sign * size for size in sizes for sign in (1, -1))], key=met)


def _near(box: FancyBboxPatch, points: np.ndarray) -> np.ndarray:
    """Whether points are inside a box or close to it, (n,)."""
    clearance = 0.06  # inches that an arrow keeps from boxes it does not touch
    low = np.array([box.get_x(), box.get_y()]) - clearance
    high = low + np.array([box.get_width(), box.get_height()]) + 2 * clearance
    return ((points > low) & (points < high)).all(axis=1)


def _box(ax: Axes, left: _Pair, size: _Pair, rounding: float, look: _Look) -> FancyBboxPatch:
    """Draws a box from the middle of its left side."""
    corner, style = (left[0], left[1] - size[1] / 2), f"round,pad=0,rounding_size={rounding}"
    box = FancyBboxPatch(corner, *size, boxstyle=style, **look)
    ax.add_patch(box)
    return box


# --------------------------------------------------------------------------------------- list


def _draw_list(
    ax: Axes, graph: CausalGraph, shares: Mapping[str, float | None], look: Mapping[str, _Look]
) -> None:
    row, right = 0.34, 1.75  # inches between two lines, and of a box
    levels = {name: 0.05 + row * (len(graph) - i - 0.5) for i, name in enumerate(graph.nodes)}
    for name, y in levels.items():
        _box(ax, (0.03, y), (right, 0.27), 0.06, look[name])
        ax.text(0.11, y, short(name, 15), ha="left", va="center", fontsize=8.5)
        ax.text(right - 0.05, y, _percent(shares[name]), ha="right", va="center", fontsize=8)
    reach = (STYLE.wide - right - 0.15) / max(len(graph) - 1, 1)
    for cause, effect in graph.edges:
        _arc(ax, right + 0.05, levels[cause], levels[effect], reach / row, shares[effect])


def _arc(ax: Axes, x: float, top: float, bottom: float, reach: float, share: float | None) -> None:
    """Draws half an ellipse from a cause down to an effect, further out the longer it is."""
    angles = np.linspace(np.pi / 2, -np.pi / 2, 40)
    xs = x + reach * (top - bottom) * np.cos(angles)
    ys = (top + bottom) / 2 + ((top - bottom) / 2 - 0.04) * np.sin(angles)
    look: _Look = {"color": _shade(STYLE.strokes, share), "linewidth": 0.8}
    ax.plot(xs[:-3], ys[:-3], alpha=0.85, **look)
    look |= {"arrowstyle": "-|>,head_length=4,head_width=2"}
    look |= {"mutation_scale": 1, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=(x, ys[-1]), xytext=(xs[-6], ys[-6]), arrowprops=look)
