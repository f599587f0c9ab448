r"""Tables that people paste: into a manuscript in LaTeX, or into a page in Markdown.

Numbers have four digits, holes are a dash, and what LaTeX or Markdown would take for a sign of
their own is written as itself.
"""

from __future__ import annotations

import abc
import re
from collections.abc import Callable, Iterable, Iterator

import pandas as pd

from misscnf.display.notebook import number_text

__all__ = ["Tabular", "to_latex", "to_markdown"]


class Tabular(abc.ABC):
    """An answer that is a table too."""

    @abc.abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Returns the answer as a table, a line a number."""

    def to_markdown(self) -> str:
        """Returns the table as Markdown, without columns that hold nothing."""
        return to_markdown(self.to_frame())

    def to_latex(self) -> str:
        """Returns the table as LaTeX (booktabs), without columns that hold nothing."""
        return to_latex(self.to_frame())


def to_markdown(frame: pd.DataFrame) -> str:
    """Returns a table as Markdown: texts left, numbers right."""
    shown = frame.dropna(axis=1, how="all")
    marks = ["---:" if right else "---" for right in _numbers(shown)]
    head = [str(name).replace("|", r"\|") for name in shown.columns]
    lines = [head, marks, *_cells(shown, lambda text: text.replace("|", r"\|"))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def to_latex(frame: pd.DataFrame) -> str:
    """Returns a table as LaTeX: texts left, numbers right."""
    shown = frame.dropna(axis=1, how="all")
    marks = "".join("r" if right else "l" for right in _numbers(shown))
    head = " & ".join(_latex(str(name)) for name in shown.columns)
    lines = [rf"{' & '.join(line)} \\" for line in _cells(shown, _latex)]
    top = [rf"\begin{{tabular}}{{{marks}}}", r"\toprule", rf"{head} \\", r"\midrule"]
    return "\n".join([*top, *lines, r"\bottomrule", r"\end{tabular}"])


def _numbers(frame: pd.DataFrame) -> Iterable[bool]:
    return (pd.api.types.is_numeric_dtype(frame[name]) for name in frame.columns)


def _cells(frame: pd.DataFrame, escaped: Callable[[str], str]) -> Iterator[list[str]]:
    for row in frame.itertuples(index=False, name=None):
        yield [escaped(number_text(value)) for value in row]


def _latex(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {sign: rf"\{sign}" for sign in "&%$#_{}"}
    special |= {"–": "--", "∞": r"$\infty$", "−": r"$-$"}
    return re.sub("|".join(map(re.escape, special)), lambda found: special[found[0]], text)
