"""A dose-response curve: a table with a line a dose, and its picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from misscnf.display.tables import to_latex, to_markdown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Curve"]


class Curve(pd.DataFrame):
    """What `MissCNF.curve` returns: a DataFrame, which draws itself as a curve with its band.

    What is selected from it is an ordinary DataFrame. `attrs` says what it is of.

    Example:
        >>> table = pd.DataFrame({"dose": [0.0, 1.0], "mean": [9.0, 7.5]})
        >>> curve = Curve.of(table, outcome="days")
        >>> curve.attrs["outcome"], curve.plot().get_ylabel()
        ('days', 'mean of days')
    """

    @classmethod
    def of(cls, table: pd.DataFrame, outcome: str) -> Curve:
        """Makes a curve of its table."""
        found = cls(table)
        found.attrs = {**table.attrs, "outcome": outcome}
        return found

    def plot(self, ax: Axes | None = None) -> Axes:  # type: ignore[override]
        """Draws the curve with its band.

        Arguments:
            ax: Axes to draw into; None makes a figure.
        """
        from misscnf import plots

        return plots.curve(self, ax=ax)

    def to_frame(self) -> pd.DataFrame:
        """Returns the table as an ordinary DataFrame."""
        return pd.DataFrame(self)

    def to_markdown(self) -> str:  # type: ignore[override]
        """Returns the table as Markdown."""
        return to_markdown(self)

    def to_latex(self) -> str:  # type: ignore[override]
        """Returns the table as LaTeX for the package booktabs."""
        return to_latex(self)
