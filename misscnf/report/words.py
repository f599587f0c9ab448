r"""The answer in words: a number, how sure it is, and what it says about people.

The sentence says what would happen if everybody had one value of the treatment rather than
another, as the graph and the rows have it. Chances are in percent, their differences in
percentage points.

Numbers have as many digits as their error leaves, and a proper minus sign. A number with a spread
s is shown to the digit in which s has its second one,

    decimals = 1 − ⌊log10 s⌋,

so that 3.3519 with an interval of width 1.9 is 3.4, and its ends have the same digits.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property

from misscnf.data.cells import plain
from misscnf.identification.words import percent
from misscnf.queries.effects import Effect, Interval

__all__ = ["rounded", "significant", "signed", "whole", "label", "minus", "points"]
__all__ += ["plural", "chance", "of_group", "Answer"]


def rounded(value: float, spread: float) -> str:
    """Returns a number with the digits that a spread around it leaves."""
    if not math.isfinite(value):
        return "not finite"
    if not (math.isfinite(spread) and spread > 0.0):
        return significant(value)
    decimals = 1 - math.floor(math.log10(spread))
    shown = round(value, decimals)
    if abs(shown) >= 1e7 or decimals > 7:
        return significant(value)
    return _tidy_minus(f"{shown:{',' * (abs(shown) >= 1e4)}.{max(decimals, 0)}f}")


def significant(value: float, digits: int = 3) -> str:
    """Returns a number with some significant digits, all of them where it is whole."""
    if not math.isfinite(value):
        return "not finite"
    if value == round(value) and abs(value) < 1e7:
        return whole(int(value))
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    if not -7 < decimals <= 7:
        return _tidy_minus(f"{value:.{digits}g}")
    return _tidy_minus(f"{round(value, decimals):.{max(decimals, 0)}f}")


def minus(text: str) -> str:
    """Returns a number with a proper minus sign."""
    return text.replace("-", "\N{MINUS SIGN}")


def of_group(name: str) -> str:
    """Returns the name of a group, numbers in it with a proper minus sign."""
    return re.sub(r"(?<!\S)-(?=[\d.])", "\N{MINUS SIGN}", name)


def _tidy_minus(text: str) -> str:
    if float(text.replace(",", "")) == 0.0:
        text = text.lstrip("-")
    return minus(text)


def signed(text: str) -> str:
    """Puts a plus before a number that has no sign and is not zero."""
    nothing = text.startswith("\N{MINUS SIGN}") or not text.strip("0.,")
    return text if nothing else f"+{text}"


def whole(count: int) -> str:
    """Returns a whole number, with commas where it is long."""
    return minus(f"{count:,}" if abs(count) >= 10_000 else str(count))


def points(share: float, spread: float) -> str:
    """Returns a difference of chances in percentage points, without their name."""
    return rounded(100.0 * share, 100.0 * spread)


def label(value: object) -> str:
    """Returns a value of a column as people write it."""
    found = plain(value)
    if found is None or isinstance(found, str | bool):
        return str(value if found is None else found)
    return minus(f"{found:.4g}")


def plural(count: int, one: str, many: str = "") -> str:
    """Returns a count with its noun, such as "3 rows"."""
    return f"{whole(count)} {one if count == 1 else many or one + 's'}"


def chance(p_value: float) -> str:
    """Returns a p-value with its sign, such as "= 0.0312"."""
    return "below 0.0001" if p_value < 1e-4 else f"= {p_value:.4f}"


@dataclass(frozen=True)
class Answer:
    """An effect that has an estimate, as the page tells it."""

    effect: Effect

    @cached_property
    def spread(self) -> float:
        """What digits are cut by: half the interval's width, or the estimate's size."""
        if self.effect.interval is not None:
            return (self.effect.interval[1] - self.effect.interval[0]) / 2
        return max(abs(self.effect.estimate or 0.0) / 10, self.effect.standard_error or 0.0)

    def numbers(self, spread: float) -> tuple[str, str]:
        """Returns the estimate and "lower to upper", with the same digits; empty without one."""
        return self._written(self.effect.estimate or 0.0, self.effect.interval, spread)

    def beside(self, estimate: float, interval: Interval | None) -> str:
        """Returns another number of the same unit with its interval, and with as many digits."""
        number, ends = self._written(estimate, interval, self.spread)
        return f"{signed(number)} ({ends})" if ends else signed(number)

    def _written(
        self, estimate: float, interval: Interval | None, spread: float
    ) -> tuple[str, str]:
        write = points if self.effect.event is not None else rounded
        ends = [write(end, spread) for end in interval or ()]
        return write(estimate, spread), " to ".join(ends)

    @property
    def e_value(self) -> str:
        """The E-value, and that of the interval; empty where there is none."""
        found = self.effect.e_values()
        if found is None:
            return ""
        ends = "" if found[1] is None else f" (interval: {found[1]:.2f})"
        return f"{found[0]:.2f}{ends}"

    @property
    def figure(self) -> str:
        """The number, such as +3.4."""
        return signed(self.numbers(self.spread)[0])

    @property
    def unit(self) -> str:
        """What it is a number of."""
        unit = "difference" if self.effect.event is None else "percentage points"
        return f"{unit} in {self._what}"

    @property
    def _what(self) -> str:
        if self.effect.event is None:
            return f"the mean of {self.effect.outcome}"
        return f"the risk of {self.effect.outcome} = {label(self.effect.event)}"

    @property
    def level(self) -> str:
        """Such as "95 %"; of no meaning where there is no interval."""
        return f"{100 * (self.effect.level or 0.0):g} %"

    @property
    def interval(self) -> str:
        """Such as "95 % interval 2.6 to 4.5"; empty where there is none."""
        ends = self.numbers(self.spread)[1]
        return f"{self.level} interval {ends}" if ends else ""

    @property
    def arms(self) -> list[tuple[str, str]]:
        """What would be under each value of the treatment."""
        risk, amounts = self.effect.event is not None, (self.effect.mean, self.effect.mean_versus)
        held = [*self.effect.do.items(), *self.effect.versus.items()]
        return [
            (f"{name} = {label(value)}", percent(mean) if risk else rounded(mean, self.spread))
            for (name, value), mean in zip(held, amounts, strict=True)
            if mean is not None
        ]

    @property
    def sentence(self) -> str:
        """What would be if everybody had one value of the treatment rather than the other."""
        (first, mean), (_, mean_versus) = self.arms
        (versus,) = self.effect.versus.values()
        start = f"If everybody had {first} rather than {label(versus)}, {self._what} would be"
        figure = self.numbers(self.spread)[0]
        if not figure.strip("\N{MINUS SIGN}0.,"):
            return f"{start} the same, {mean}, as far as these digits tell."
        size = figure.lstrip("\N{MINUS SIGN}")
        size += " percentage points" * (self.effect.event is not None)
        way = "lower" if figure.startswith("\N{MINUS SIGN}") else "higher"
        return f"{start} {size} {way}: {mean} rather than {mean_versus}."

    @property
    def caution(self) -> str:
        """What the interval does or does not say."""
        if self.effect.interval is None and self.effect.doubts:
            return " ".join(doubt[0].upper() + doubt[1:] for doubt in self.effect.doubts)
        if self.effect.interval is None:
            return (
                "No interval was computed, so nothing is said here about how far chance in the "
                "sample could have moved this number."
            )
        lower, upper = self.effect.interval
        inside = "is in it" if lower <= 0.0 <= upper else "is not in it"
        return (
            f"Allowing for chance in the sample, anything from {self.numbers(self.spread)[1]} is "
            f"plausible ({self.level} interval). Zero, no effect at all, {inside}."
        )

    @property
    def ratios(self) -> str:
        """Risk ratio and odds ratio, in words."""
        parts = []
        for name in ("risk_ratio", "odds_ratio"):
            ratio, ends = getattr(self.effect, name), getattr(self.effect, f"{name}_interval")
            if ratio is not None:
                around = "" if ends is None else f" ({' to '.join(map(significant, ends))})"
                parts.append(f"{name.replace('_', ' ')} {significant(ratio)}{around}")
        return f"{', '.join(parts).capitalize()}." if parts else ""

    @property
    def levels(self) -> list[tuple[str, str, str, str]]:
        """Each level of the outcome: its chance under both values, and the difference."""
        table = self.effect.probabilities
        if table is None or len(table) <= 2:
            return []
        rows = zip(*(table[name] for name in ("level", "do", "versus", "difference")), strict=True)
        return [
            (label(level), percent(p), percent(q), signed(points(more, 0.01)))
            for level, p, q, more in rows
        ]
