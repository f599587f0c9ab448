"""Colours and sizes of every picture and card, in one place.

Blue is what was seen, orange what to be careful about: told apart by colour-blind readers too, and
dark enough to be read as letters on white.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Style", "STYLE"]


@dataclass(frozen=True)
class Style:
    """A palette, and the sizes that go with it."""

    ink: str = "#1d2733"
    soft: str = "#566270"
    rule: str = "#d9dee3"
    blue: str = "#00639c"
    middle_blue: str = "#8dbbd9"
    pale_blue: str = "#cfe3f1"
    orange: str = "#b34700"
    pale_orange: str = "#fbe0cc"
    green: str = "#00795a"
    tints: tuple[str, str, str] = ("#f8c9a4", "#f4f4f2", "#b5d6ec")
    """From what is never seen to what always is: orange to blue, dark letters on both."""
    strokes: tuple[str, str, str] = ("#c25a12", "#8d9399", "#2f7cb0")
    """The same, for lines."""
    font_size: float = 8.5
    wide: float = 4.4
    """Inches of a picture as wide as a phone."""
    small: float = 1.9
    """Inches of one of two side by side."""
    pixels_an_inch: int = 130
    """At most so many on a screen: beyond, letters would be larger than the text."""

    def rc(self) -> Any:  # noqa: ANN401 - matplotlib types its keys one by one
        """Returns what matplotlib is to be told."""
        return {
            "font.size": self.font_size,
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans", "Verdana", "Helvetica", "Arial"],
            "text.color": self.ink,
            "text.parse_math": False,
            "axes.labelcolor": self.ink,
            "axes.edgecolor": self.soft,
            "axes.titlesize": self.font_size,
            "axes.titlelocation": "left",
            "axes.labelsize": self.font_size,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.linewidth": 0.7,
            "axes.axisbelow": True,
            "axes.unicode_minus": True,
            "xtick.color": self.soft,
            "ytick.color": self.soft,
            "xtick.labelcolor": self.ink,
            "ytick.labelcolor": self.ink,
            "xtick.major.width": 0.7,
            "ytick.major.width": 0.7,
            "grid.color": self.rule,
            "grid.linewidth": 0.6,
            "legend.frameon": False,
            "lines.linewidth": 1.5,
            "svg.fonttype": "none",
            "svg.hashsalt": "misscnf",
        }


STYLE = Style()
