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
from dataclasses import dataclass

from misscnf.data.cells import plain
from misscnf.identification.words import percent
from misscnf.queries.effects import Effect

__all__ = [
    "rounded",
    "nearby",
    "significant",
    "signed",
    "whole",
    "label",
    "minus",
    "points",
    "plural",
    "chance",
    "Answer",
    "tell",
    "estimate_and_interval",
    "spread_of",
]


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


def nearby(value: float, spread: float) -> float:
    """Returns a short number near a value, within a twentieth of a spread around it."""
    return value if spread <= 0.0 else round(value, math.ceil(-math.log10(spread / 20.0)))


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
    """An effect as the page tells it."""

    figure: str
    """The number, such as +3.4."""
    unit: str
    """What it is a number of."""
    interval: str
    """Such as "95 % interval 2.6 to 4.5"; empty where there is none."""
    level: str
    """Such as "95 %"; empty where there is no interval."""
    sentence: str
    caution: str
    """What the interval does or does not say."""
    arms: tuple[tuple[str, str], ...]
    """What would be under each value of the treatment."""
    ratios: str
    """Risk ratio and odds ratio, in words."""
    levels: tuple[tuple[str, str, str, str], ...]
    """Each level of the outcome: its chance under both values, and the difference."""


def tell(effect: Effect) -> Answer:
    """Puts an effect with an estimate into words."""
    figure, ends = estimate_and_interval(effect)
    (treatment, value), (_, versus) = *effect.do.items(), *effect.versus.items()
    first, second = (f"{treatment} = {label(held)}" for held in (value, versus))
    amounts = _amount(effect.mean, effect), _amount(effect.mean_versus, effect)
    return Answer(
        figure=signed(figure),
        unit=_unit(effect),
        interval=f"{_level(effect)} interval {ends}" if ends else "",
        level=_level(effect) if ends else "",
        sentence=_sentence(effect, f"{first} rather than {label(versus)}", figure, amounts),
        caution=_caution(effect, ends),
        arms=((first, amounts[0]), (second, amounts[1])),
        ratios=_ratios(effect),
        levels=_levels(effect),
    )


def estimate_and_interval(effect: Effect, spread: float | None = None) -> tuple[str, str]:
    """Returns the estimate and "lower to upper", with the same digits; empty without interval.

    Arguments:
        effect: The effect.
        spread: What the digits are cut by; the effect's own by default.
    """
    spread = spread_of(effect) if spread is None else spread
    write = points if effect.event is not None else rounded
    ends = [write(end, spread) for end in effect.interval or ()]
    return write(effect.estimate or 0.0, spread), " to ".join(ends)


def spread_of(effect: Effect) -> float:
    """Returns what an estimate's digits are cut by: its interval's width, or its size."""
    if effect.interval is not None:
        return (effect.interval[1] - effect.interval[0]) / 2
    return max(abs(effect.estimate or 0.0) / 10, effect.standard_error or 0.0)


def _amount(mean: float | None, effect: Effect) -> str:
    if mean is None:
        return ""
    return percent(mean) if effect.event is not None else rounded(mean, spread_of(effect))


def _unit(effect: Effect) -> str:
    unit = "difference" if effect.event is None else "percentage points"
    return f"{unit} in {_what(effect)}"


def _what(effect: Effect) -> str:
    if effect.event is None:
        return f"the mean of {effect.outcome}"
    return f"the risk of {effect.outcome} = {label(effect.event)}"


def _level(effect: Effect) -> str:
    return f"{100 * (effect.level or 0.0):g} %"


def _sentence(effect: Effect, arms: str, figure: str, amounts: tuple[str, str]) -> str:
    start = f"If everybody had {arms}, {_what(effect)} would be"
    if not figure.strip("\N{MINUS SIGN}0.,"):
        return f"{start} the same, {amounts[0]}, as far as these digits tell."
    size = figure.lstrip("\N{MINUS SIGN}") + " percentage points" * (effect.event is not None)
    way = "lower" if figure.startswith("\N{MINUS SIGN}") else "higher"
    return f"{start} {size} {way}: {amounts[0]} rather than {amounts[1]}."


def _caution(effect: Effect, ends: str) -> str:
    if effect.interval is None:
        return (
            "No interval was computed, so nothing is said here about how far chance in the "
            "sample could have moved this number."
        )
    lower, upper = effect.interval
    inside = "is in it" if lower <= 0.0 <= upper else "is not in it"
    return (
        f"Allowing for chance in the sample, anything from {ends} is plausible "
        f"({_level(effect)} interval). Zero, no effect at all, {inside}."
    )


def _ratios(effect: Effect) -> str:
    parts = []
    for name, ratio, ends in (
        ("risk ratio", effect.risk_ratio, effect.risk_ratio_interval),
        ("odds ratio", effect.odds_ratio, effect.odds_ratio_interval),
    ):
        if ratio is not None:
            around = "" if ends is None else f" ({significant(ends[0])} to {significant(ends[1])})"
            parts.append(f"{name} {significant(ratio)}{around}")
    return f"{', '.join(parts).capitalize()}." if parts else ""


def _levels(effect: Effect) -> tuple[tuple[str, str, str, str], ...]:
    table = effect.probabilities
    if table is None or len(table) <= 2:
        return ()
    return tuple(
        (
            label(line["level"]),
            percent(float(line["do"])),
            percent(float(line["versus"])),
            signed(points(float(line["difference"]), 0.01)),
        )
        for line in table.to_dict(orient="records")
    )
