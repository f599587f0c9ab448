r"""Pictures that live inside the page: SVG in a data address, with words for those who cannot see.

They are drawn for a phone: 4.4 inches are the width of a narrow screen, small multiples stand two
in a row there and four on a desk. Names come from the user, so nothing in them is mathematics to
matplotlib. The salt makes the same picture the same bytes.
"""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

__all__ = ["Image", "new_figure", "image", "short", "WIDE", "SMALL"]
__all__ += ["INK", "SOFT", "RULE", "BLUE", "MIDDLE_BLUE", "PALE_BLUE", "ORANGE", "PALE_ORANGE"]

INK, SOFT, RULE = "#1d2733", "#566270", "#d9dee3"
BLUE, MIDDLE_BLUE, PALE_BLUE = "#00639c", "#8dbbd9", "#cfe3f1"
ORANGE, PALE_ORANGE = "#b34700", "#fbe0cc"


WIDE, SMALL = 4.4, 1.9
"""Inches: of a picture as wide as a phone, and of one of two side by side."""
PIXELS_AN_INCH = 130
"""At most so many on a screen: beyond, letters would be larger than the text."""

STYLE: Any = {  # matplotlib types its keys one by one
    "font.size": 8.5,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Helvetica", "Arial"],
    "text.color": INK,
    "text.parse_math": False,
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "misscnf",
}


@dataclass(frozen=True)
class Image:
    """A picture as the page holds it."""

    source: str
    """A data address."""
    alt: str
    """What it shows, in words."""
    width: int
    """Pixels, at most."""
    height: int
    """Pixels at that width."""


@contextmanager
def new_figure(width: float, height: float) -> Iterator[Figure]:
    """Gives an empty figure in the report's style; `image` turns it into an image, inside.

    Arguments:
        width: Inches.
        height: Inches.
    """
    with mpl.rc_context(STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def image(figure: Figure, alt: str) -> Image:
    """Makes an image of a figure, with what it shows in words."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # Letters that matplotlib's font lacks are measured wrongly, and drawn by the browser.
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    width, height = figure.get_size_inches()
    return Image(
        source=f"data:image/svg+xml;base64,{data}",
        alt=alt,
        width=round(PIXELS_AN_INCH * width),
        height=round(PIXELS_AN_INCH * height),
    )


def short(name: str, most: int) -> str:
    """Cuts a name that is too long for its place."""
    name = " ".join(name.split())
    return name if len(name) <= most else f"{name[: most - 1]}…"
