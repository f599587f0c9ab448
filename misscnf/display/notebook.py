r"""What a notebook shows: one small card of HTML, escaped and with a style of its own.

    card = title + facts (name: value) + tables + notes

A card uses no script, no font and no sheet from elsewhere, since a notebook is mailed, exported
and read offline. Everything that comes from a table or a graph (names, levels, sentences) is
escaped: a column may be called `<b>`. Colours are set for the border alone, so that the text
follows the reader's light or dark theme.

What is under way is one output of a cell that is written anew (`Rewritten`): all that the front
end has to do is to show HTML, and it needs no widgets.
"""

from __future__ import annotations

import html
import importlib
import math
import sys
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, Literal

import pandas as pd

from misscnf.display.style import STYLE

__all__ = ["card", "number_text", "in_notebook", "Rewritten"]


def card(
    title: str,
    facts: Mapping[str, object] | None = None,
    tables: Mapping[str, pd.DataFrame] | None = None,
    notes: Iterable[str] = (),
    *,
    state: Literal["plain", "good", "bad"] = "plain",
) -> str:
    """Returns a card as HTML: a line a fact, tables under their captions, sentences below.

    A table with an empty caption has none. The state is the colour of the border.
    """
    parts = [f"<strong>{_text(title)}</strong>"]
    if facts:
        lines = (f"{_cell('th', name)}{_cell('td', value)}" for name, value in facts.items())
        parts.append(_table(lines))
    for caption, frame in (tables or {}).items():
        parts += [f"<div>{_text(caption)}</div>"] if caption else []
        parts.append(_frame(frame))
    parts += [f"<div>{_text(note)}</div>" for note in notes]
    colours = {"plain": STYLE.blue, "good": STYLE.green, "bad": STYLE.orange}
    style = f"border-left:4px solid {colours[state]};padding-left:1em;line-height:1.5"
    return f'<div style="{style}">{"".join(parts)}</div>'


def in_notebook() -> bool:
    """Says whether this is the kernel of a notebook, whose front end shows HTML."""
    python = sys.modules.get("IPython")
    return getattr(python and python.get_ipython(), "kernel", None) is not None


class Rewritten:
    """One output of the cell that runs, which is written anew each time; gone once it is cleared.

    Nothing is there before the first line is written.
    """

    def __init__(self) -> None:
        self._output: Any = None
        self.heading = ""
        """what stands above every line"""

    def write(self, line: str, share: float | None) -> None:
        """Shows a line, and a bar with the share that is done, if that is known."""
        value = "" if share is None else f' value="{share:.4f}"'
        bar = f'<progress{value} style="width:12em;vertical-align:middle"></progress>'
        above = f"<div>{_text(self.heading)}</div>" if self.heading else ""
        plain = f"{self.heading}\n{line}" if self.heading else line
        self._show({"text/html": f"{above}<div>{bar} {_text(line)}</div>", "text/plain": plain})

    def clear(self) -> None:
        """Leaves nothing behind, if there was anything."""
        if self._output is not None:
            self._show({"text/html": "", "text/plain": ""})

    def _show(self, shown: Mapping[str, str]) -> None:
        if self._output is None:
            display = importlib.import_module("IPython.display").display
            self._output = display(shown, raw=True, display_id=True)
        else:
            self._output.update(shown, raw=True)


def number_text(value: object) -> str:
    """Returns a value as text: four digits of a number, whole numbers whole, "–" for none."""
    if value is None or value is pd.NA or value is pd.NaT:
        return "–"
    if isinstance(value, bool | str) or not isinstance(value, Real):
        return str(value)
    if isinstance(value, Integral):
        return str(int(value))
    number = float(value)
    return "–" if math.isnan(number) else f"{number:.4g}".replace("inf", "∞")


def _frame(frame: pd.DataFrame, most: int = 20) -> str:
    """Returns a table with its index where that has a name; further rows are counted."""
    shown = frame if frame.index.name is None else frame.reset_index()
    head = "".join(_cell("th", name) for name in shown.columns)
    cells = shown.head(most).itertuples(index=False, name=None)
    lines = ["".join(_cell("td", value) for value in row) for row in cells]
    if len(shown) > most:
        lines.append(_cell("td", f"… and {len(shown) - most} more"))
    return _table([head, *lines])


def _table(lines: Iterable[str]) -> str:
    rows = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="border-collapse:collapse;border:0;margin:.3em 0">{rows}</table>'


def _cell(tag: str, value: object) -> str:
    style = "padding:.1em .8em .1em 0;border:0;text-align:left;vertical-align:top"
    return f'<{tag} style="{style}">{_text(number_text(value))}</{tag}>'


def _text(text: str) -> str:
    return html.escape(text).replace("\n", "<br>")
