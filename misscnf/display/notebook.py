r"""What a notebook shows: one small card of HTML, escaped and with a style of its own.

    card = title + facts (name: value) + tables + notes

A card uses no script, no font and no sheet from elsewhere, since a notebook is mailed, exported
and read offline. Everything that comes from a table or a graph (names, levels, sentences) is
escaped: a column may be called `<b>`. Colours are set for the border alone, so that the text
follows the reader's light or dark theme.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, Literal, Protocol

import pandas as pd

from misscnf.display.style import STYLE

__all__ = ["card", "effect_html", "interval_text", "number_text"]


class _Effect(Protocol):
    """The fields of an effect that its card shows; others are looked up if they are there."""

    @property
    def measure(self) -> str: ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    @property
    def probabilities(self) -> pd.DataFrame | None: ...


def card(
    title: str,
    facts: Mapping[str, object] | None = None,
    tables: Mapping[str, pd.DataFrame] | None = None,
    notes: Iterable[str] = (),
    *,
    state: Literal["plain", "good", "bad"] = "plain",
) -> str:
    """Returns a card as HTML.

    Arguments:
        title: The first line.
        facts: Name and value, a line each.
        tables: Caption and table; an empty caption has no line.
        notes: Sentences below.
        state: "plain", "good" or "bad": the colour of the border.
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


def effect_html(effect: _Effect, heading: str) -> str:
    """Returns the card of an effect.

    Arguments:
        effect: A `misscnf.Effect`.
        heading: Which effect, in words, such as "effect on y of do(t = 1) versus do(t = 0)".
    """
    event = getattr(effect, "event", None)
    measure = effect.measure if event is None else f"{effect.measure} of {event!r}"
    told = {measure: _with_error(effect, "estimate", "standard_error", "interval")}
    for ratio in ("risk_ratio", "odds_ratio"):
        errors = f"{ratio}_error", f"{ratio}_interval"
        told[ratio.replace("_", " ")] = _with_error(effect, ratio, *errors)
    of = "mean" if effect.measure == "mean difference" else "risk"
    arms = {f"{of} under do": "mean", f"{of} under versus": "mean_versus"}
    for name, field in {**arms, "draws": "draws", "replicates": "replicates"}.items():
        told[name] = getattr(effect, field, None)
    facts = {name: value for name, value in told.items() if value is not None}
    levels = effect.probabilities
    shown = {} if levels is None else {"probability of each level": levels}
    return card(heading, facts, shown, effect.notes)


def _with_error(effect: _Effect, value: str, error: str, interval: str) -> str | None:
    if getattr(effect, value, None) is None:
        return None
    parts = [number_text(getattr(effect, value))]
    ends = getattr(effect, interval, None)
    if ends is not None:
        parts.append(interval_text(ends, getattr(effect, "level", None)))
    spread = getattr(effect, error, None)
    if spread is not None:
        parts.append(f"(Monte-Carlo error {spread:.2g})")
    return " ".join(parts)


def interval_text(ends: Iterable[Any], level: float | None = None) -> str:
    """Returns an interval as people write it, such as "[1.2, 3.4] (95 %)"."""
    text = f"[{', '.join(number_text(end) for end in ends)}]"
    return text if level is None else f"{text} ({100 * level:g} %)"


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
