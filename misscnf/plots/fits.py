"""How a fit came about, and whether it fits: training, noise, and imputations against the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.special import ndtri

from misscnf.display.style import STYLE
from misscnf.errors import InputError
from misscnf.plots.canvas import canvas, short

__all__ = ["training", "kept_epoch", "noise", "imputations"]


def training(history: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draws the log-density of training and held-out rows after each epoch.

    Arguments:
        history: `model.history_`, where networks were trained.
        ax: Axes to draw into; None makes a figure.

    Returns:
        The axes.

    Example:
        >>> import pandas as pd
        >>> from misscnf import plots
        >>> history = pd.DataFrame({"epoch": [1, 2], "train": [-3.0, -2.5]})
        >>> plots.training(history).get_xlabel()
        'epoch'
    """
    if not len(history):
        raise InputError("no epoch was run: the fit has lines and curves alone, which are solved.")
    epochs = history["epoch"].to_numpy(dtype=float)
    with canvas(ax, STYLE.wide, 2.3) as drawn:
        for name, words, colour, dash in (
            ("train", "training rows", STYLE.soft, (0, (4, 2))),
            ("validation", "held-out rows", STYLE.blue, "-"),
        ):
            if name not in history or history[name].isna().all():
                continue
            values = history[name].to_numpy(dtype=float)
            drawn.plot(epochs, values, color=colour, linestyle=dash, label=words)
            if name == "validation":
                kept = kept_epoch(history)
                drawn.plot(epochs[kept], values[kept], "o", color=STYLE.orange, label="kept")
        drawn.set_xlabel("epoch")
        drawn.set_ylabel("log-density a row, nats")
        if ax is None:
            drawn.legend(fontsize=8)
        drawn.grid(axis="y")
    return drawn


def kept_epoch(history: pd.DataFrame) -> int:
    """Returns the place of the epoch whose weights the model has."""
    if "kept" not in history:  # a model saved when the best epoch by held-out rows was kept
        return int(np.nanargmax(history["validation"].to_numpy(dtype=float)))
    return int(np.flatnonzero(history["kept"])[-1])


def noise(
    values: np.ndarray,
    *,
    name: str = "",
    ok: bool = True,
    points: int = 60,
    ax: Axes | None = None,
) -> Axes:
    """Draws sorted noise against what a standard normal would give.

    Points on the dashed line are as they should be. Points that leave it at its ends are a tail
    that the model lacks.

    Arguments:
        values: The noise of a column in some rows, such as `abduct` of the model gives.
        name: Of the column.
        ok: False draws it in orange.
        points: How many are drawn: as many as the eye tells apart, with both ends.
        ax: Axes to draw into; None makes a figure.

    Returns:
        The axes.

    Example:
        >>> import numpy as np
        >>> from misscnf import plots
        >>> ax = plots.noise(np.random.default_rng(0).normal(size=200), name="days")
        >>> ax.get_title(loc="left") or ax.get_title()
        'days'
    """
    values = np.sort(np.asarray(values, dtype=float))
    some = np.unique(np.linspace(0, len(values) - 1, points).astype(np.int64))
    places, colour = ndtri((some + 0.5) / len(values)), STYLE.blue if ok else STYLE.orange
    with canvas(ax, 2.6, 2.4) as drawn:
        drawn.plot([-4, 4], [-4, 4], color=STYLE.soft, linewidth=0.9, linestyle=(0, (4, 3)))
        drawn.plot(places, values[some], ".", color=colour, markersize=4, markeredgewidth=0)
        drawn.set_xlim(-3.6, 3.6)
        drawn.set_ylim(-4.6, 4.6)
        drawn.set_xticks([-3, 0, 3])
        drawn.set_yticks([-3, 0, 3])
        drawn.set_title(short(name, 20), color=STYLE.ink if ok else STYLE.orange)
        drawn.grid(visible=True)
    return drawn


def imputations(
    df: pd.DataFrame, imputed: pd.DataFrame, column: str, *, ax: Axes | None = None
) -> Axes:
    """Draws what was imputed in each table (orange) against what was observed (blue).

    The two need not agree where values are lost depending on others: then the rows with holes are
    other people. A shape that nobody expected is worth a look.

    Arguments:
        df: The table with its holes.
        imputed: What `model.impute(df, draws)` returns, with levels (draw, row).
        column: Which column.
        ax: Axes to draw into; None makes a figure.

    Returns:
        The axes.

    Example:
        >>> import pandas as pd
        >>> from misscnf import plots
        >>> df = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, float("nan"), float("nan")]})
        >>> one, other = (df.fillna({"x": value}) for value in (1.5, 2.5))
        >>> ax = plots.imputations(df, pd.concat({0: one, 1: other}), "x")
        >>> ax.get_xlabel()
        'x'
    """
    if column not in df or column not in imputed:
        raise InputError(f"there is no column {column!r} in both tables; name one that is.")
    lost = df[column].isna().to_numpy()
    if not lost.any() or lost.all():
        raise InputError(f"{column!r} has no holes, or nothing else: there is nothing to compare.")
    tables = [one[column].to_numpy()[lost] for _, one in imputed.groupby(level=0)]
    seen = df[column].to_numpy()[~lost]
    with canvas(ax, STYLE.wide, 2.6) as drawn:
        if pd.api.types.is_numeric_dtype(df[column]) and len(np.unique(seen)) > 12:
            _draw_densities(drawn, seen.astype(float), [one.astype(float) for one in tables])
            drawn.set_yticks([])
        else:
            _draw_shares(drawn, seen, tables)
        drawn.set_xlabel(short(column, 50))
        if ax is None:
            drawn.legend(fontsize=8)
    return drawn


def _draw_densities(ax: Axes, seen: np.ndarray, tables: list[np.ndarray]) -> None:
    bins = np.histogram_bin_edges(np.concatenate([seen, *tables]), bins=30).tolist()
    ax.hist(seen, bins=bins, density=True, color=STYLE.middle_blue, label="observed")
    for k, one in enumerate(tables):
        look: dict[str, Any] = {
            "color": STYLE.orange,
            "alpha": max(0.25, 1.0 / len(tables)),
            "linewidth": 1.0,
        }
        label = f"imputed, {len(tables)} tables" if k == 0 else None
        ax.hist(one, bins=bins, density=True, histtype="step", label=label, **look)


def _draw_shares(ax: Axes, seen: np.ndarray, tables: list[np.ndarray]) -> None:
    levels = sorted(pd.unique(pd.Series(seen)), key=str)
    places = np.arange(len(levels))
    ax.bar(places, [np.mean(seen == level) for level in levels], 0.7, color=STYLE.middle_blue)
    ax.containers[-1].set_label("observed")
    for k, one in enumerate(tables):
        shares = [np.mean(one == level) for level in levels]
        label = f"imputed, {len(tables)} tables" if k == 0 else None
        ax.plot(places, shares, "_", color=STYLE.orange, markersize=16, label=label)
    ax.set_xticks(places, [short(str(level), 12) for level in levels])
    ax.set_ylabel("share")
