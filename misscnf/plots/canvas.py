"""Where a picture is drawn: into the axes of the caller, or into a figure of its own.

Every function of `misscnf.plots` takes `ax=` and returns its axes. Without one it makes a figure
in the style of the package; axes that are given keep the style that their owner has set.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib as mpl
from matplotlib.axes import Axes

from misscnf.display.style import STYLE

__all__ = ["canvas", "short"]


@contextmanager
def canvas(ax: Axes | None, width: float, height: float) -> Iterator[Axes]:
    """Gives the axes to draw into; without any, those of a new figure of this size in inches."""
    if ax is not None:
        yield ax
        return
    from matplotlib import pyplot

    with mpl.rc_context(STYLE.rc()):
        yield pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def short(name: str, most: int = 28) -> str:
    """Cuts a name that is too long for its place."""
    name = " ".join(name.split())
    return name if len(name) <= most else f"{name[: most - 1]}…"
