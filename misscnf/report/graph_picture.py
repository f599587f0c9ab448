r"""The picture of the graph: causes above effects, tinted by how often a family is seen whole.

A sparse graph is drawn in layers, each node below all its causes. One with many edges would be a
ball of wool that way: it is drawn as a list in causal order, with an arc from each cause down to
each effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from misscnf.graph import CausalGraph
from misscnf.report.figures import INK, ORANGE, SOFT, WIDE, Image, image, new_figure, short

__all__ = ["draw_graph"]

TINTS = LinearSegmentedColormap.from_list("coverage", ["#f8c9a4", "#f4f4f2", "#b5d6ec"])
STROKES = LinearSegmentedColormap.from_list("coverage edges", ["#c25a12", "#8d9399", "#2f7cb0"])
"""From families never seen whole to those always seen: orange to blue, dark letters on both."""
EDGES_A_NODE = 2.0
"""With more, arcs are drawn instead of layers."""
MOST_ACROSS = 4
"""Boxes in a layer; with more, arcs."""
BOX_HEIGHT = 0.36
CURVATURES = (0.0, 0.12, -0.12, 0.25, -0.25, 0.4, -0.4, 0.55, -0.55, 0.75, -0.75, 1.0, -1.0)
CLEARANCE = 0.06
"""Inches that an arrow keeps from boxes it does not touch."""
ROW = 0.34
"""Inches between two lines of the list."""


def draw_graph(
    graph: CausalGraph, shares: Mapping[str, float], uncovered: set[str], asked: tuple[str, ...]
) -> Image:
    """Draws a graph.

    Arguments:
        graph: The causal graph.
        shares: For each node, the share of rows that show it with its parents.
        uncovered: Nodes whose family is not covered, with an orange frame.
        asked: Treatment and outcome, with a heavy frame.
    """
    alt = "The causal graph. " + "; ".join(
        f"{name}, {_percent(shares[name])} of rows, caused by {_causes(graph, name)}"
        for name in graph.nodes
    )
    layers = _layers(graph)
    look = {name: _look(name, shares[name], uncovered, asked) for name in graph.nodes}
    wide = max(map(len, layers)) > MOST_ACROSS
    if len(graph.edges) > EDGES_A_NODE * len(graph) or wide:
        return _draw_list(graph, shares, look, f"{alt}.")
    return _draw_layers(graph, layers, shares, look, f"{alt}.")


def _causes(graph: CausalGraph, name: str) -> str:
    return ", ".join(graph.parents_of(name)) or "nothing here"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _look(name: str, share: float, uncovered: set[str], asked: tuple[str, ...]) -> dict[str, Any]:
    flagged = name in uncovered
    return {
        "facecolor": to_hex(TINTS(share)),
        "edgecolor": ORANGE if flagged else INK if name in asked else SOFT,
        "linestyle": (0, (3, 1.5)) if flagged else "-",
        "linewidth": 1.8 if flagged or name in asked else 0.8,
    }


# ------------------------------------------------------------------------------------- layers


def _layers(graph: CausalGraph) -> list[list[str]]:
    """Returns the nodes by generation, those with near causes near one another."""
    layers = [list(layer) for layer in nx.topological_generations(graph.to_networkx())]
    place: dict[str, float] = {}
    for layer in layers:
        order = {name: i for i, name in enumerate(graph.nodes)}
        above = {
            name: float(np.mean([place[p] for p in graph.parents_of(name)] or [0.0]))
            for name in layer
        }
        layer.sort(key=lambda name: (above[name], order[name]))
        for i, name in enumerate(layer):
            place[name] = i - (len(layer) - 1) / 2
    return layers


def _draw_layers(
    graph: CausalGraph,
    layers: list[list[str]],
    shares: Mapping[str, float],
    look: Mapping[str, dict[str, Any]],
    alt: str,
) -> Image:
    height = 0.85 * len(layers)
    with new_figure(WIDE, height) as figure:
        ax = _blank(figure, WIDE, height)
        boxes: dict[str, FancyBboxPatch] = {}
        middles: dict[str, tuple[float, float]] = {}
        for level, layer in enumerate(layers):
            step = WIDE / len(layer)
            for i, name in enumerate(layer):
                middle = ((i + 0.5) * step, height - 0.85 * (level + 0.5))
                middles[name] = middle
                width = min(0.25 + 0.085 * max(len(name), 6), 1.6, step - 0.1)
                boxes[name] = _box(ax, middle, width, look[name])
                _write(ax, middle, name, shares[name], 16 if len(layer) < MOST_ACROSS else 12)
        for cause, effect in graph.edges:
            others = [box for name, box in boxes.items() if name not in (cause, effect)]
            link = _least_bend(middles[cause], middles[effect], others)
            _arrow(ax, middles, boxes, cause, effect, link, shares[effect])
        return image(figure, alt)


def _least_bend(
    start: tuple[float, float], end: tuple[float, float], boxes: list[FancyBboxPatch]
) -> float:
    """Returns the smallest bend of an arrow that meets no box, or the one that meets least.

    An arrow of matplotlib's arc3 is a parabola whose control point lies beside the middle.
    """
    t = np.linspace(0.0, 1.0, 60)[:, None]
    a, b = np.array(start), np.array(end)
    across = np.array([b[1] - a[1], a[0] - b[0]])

    def met(link: float) -> float:
        control = (a + b) / 2 + link * across
        points = (1 - t) ** 2 * a + 2 * t * (1 - t) * control + t**2 * b
        outside = (points[:, 0] < 0.05) | (points[:, 0] > WIDE - 0.05)
        hits = sum(_near(box, points).sum() for box in boxes) + 3 * outside.sum()
        return float(hits) + abs(link)

    return min(CURVATURES, key=met)


def _near(box: FancyBboxPatch, points: np.ndarray) -> np.ndarray:
    """Whether points are inside a box or close to it, (n,)."""
    low = np.array([box.get_x(), box.get_y()]) - CLEARANCE
    high = low + np.array([box.get_width(), box.get_height()]) + 2 * CLEARANCE
    return ((points > low) & (points < high)).all(axis=1)


def _blank(figure: Figure, width: float, height: float) -> Axes:
    """Returns a sheet that fills a figure, measured in inches."""
    figure.set_layout_engine("none")
    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    ax.set_axis_off()
    ax.set_xlim(0.0, width)
    ax.set_ylim(0.0, height)
    return ax


def _box(
    ax: Axes, middle: tuple[float, float], width: float, look: dict[str, Any]
) -> FancyBboxPatch:
    corner = middle[0] - width / 2, middle[1] - BOX_HEIGHT / 2
    box = FancyBboxPatch(
        corner, width, BOX_HEIGHT, boxstyle="round,pad=0,rounding_size=0.07", zorder=3, **look
    )
    ax.add_patch(box)
    return box


def _write(ax: Axes, middle: tuple[float, float], name: str, share: float, letters: int) -> None:
    x, y = middle
    ax.text(x, y + 0.075, short(name, letters), ha="center", va="center", fontsize=8.5, zorder=4)
    ax.text(x, y - 0.085, _percent(share), ha="center", va="center", fontsize=7.5, zorder=4)


def _arrow(
    ax: Axes,
    middles: Mapping[str, tuple[float, float]],
    boxes: Mapping[str, FancyBboxPatch],
    cause: str,
    effect: str,
    link: float,
    share: float,
) -> None:
    ax.add_patch(
        FancyArrowPatch(
            middles[cause],
            middles[effect],
            patchA=boxes[cause],
            patchB=boxes[effect],
            shrinkA=0.0,
            shrinkB=1.0,
            connectionstyle=f"arc3,rad={link}",
            arrowstyle="-|>,head_length=4,head_width=2.2",
            color=to_hex(STROKES(share)),
            linewidth=1.2,
            zorder=2,
        )
    )


# --------------------------------------------------------------------------------------- list


def _draw_list(
    graph: CausalGraph,
    shares: Mapping[str, float],
    look: Mapping[str, dict[str, Any]],
    alt: str,
) -> Image:
    height = ROW * len(graph) + 0.1
    with new_figure(WIDE, height) as figure:
        ax = _blank(figure, WIDE, height)
        right = 1.75
        levels = {name: height - 0.05 - ROW * (i + 0.5) for i, name in enumerate(graph.nodes)}
        for name, y in levels.items():
            corner = (0.03, y - 0.135)
            ax.add_patch(
                FancyBboxPatch(
                    corner, right, 0.27, boxstyle="round,pad=0,rounding_size=0.06", **look[name]
                )
            )
            ax.text(0.11, y, short(name, 15), ha="left", va="center", fontsize=8.5)
            ax.text(right - 0.05, y, _percent(shares[name]), ha="right", va="center", fontsize=8)
        reach = (WIDE - right - 0.15) / max(len(graph) - 1, 1)
        for cause, effect in graph.edges:
            _arc(ax, right + 0.05, levels[cause], levels[effect], reach, shares[effect])
        return image(figure, alt)


def _arc(ax: Axes, x: float, top: float, bottom: float, reach: float, share: float) -> None:
    """Draws half an ellipse from a cause down to an effect, further out the longer it is."""
    span = (top - bottom) / ROW
    angles = np.linspace(np.pi / 2, -np.pi / 2, 40)
    xs = x + reach * span * np.cos(angles)
    ys = (top + bottom) / 2 + ((top - bottom) / 2 - 0.04) * np.sin(angles)
    colour = to_hex(STROKES(share))
    ax.plot(xs[:-3], ys[:-3], color=colour, linewidth=0.8, alpha=0.85)
    ax.annotate(
        "",
        xy=(x, ys[-1]),
        xytext=(xs[-6], ys[-6]),
        arrowprops={
            "arrowstyle": "-|>,head_length=4,head_width=2",
            "color": colour,
            "linewidth": 0.8,
            "mutation_scale": 1,
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )
