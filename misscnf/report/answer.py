r"""The answer in words: a number, how sure it is, and what it says about people.

The sentence says what would happen if everybody had one value of the treatment rather than
another, as the graph and the rows have it. Chances are in percent, their differences in
percentage points.
"""

from __future__ import annotations

from dataclasses import dataclass

from misscnf.identification.words import percent
from misscnf.queries.effects import Effect
from misscnf.report.digits import label, points, rounded, signed, significant

__all__ = ["Answer", "tell", "estimate_and_interval", "spread_of"]


@dataclass(frozen=True)
class Answer:
    """An effect as the page tells it."""

    figure: str
    """The number, such as +3.4."""
    unit: str
    """What it is a number of."""
    interval: str
    """Such as "95 % interval 2.6 to 4.5"; empty where there is none."""
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
    arms = tuple(
        (f"{treatment} = {label(held)}", _amount(mean, effect))
        for held, mean in ((value, effect.mean), (versus, effect.mean_versus))
    )
    return Answer(
        figure=signed(figure),
        unit=_unit(effect),
        interval=f"{_level(effect)} interval {ends}" if ends else "",
        sentence=_sentence(effect, treatment, label(value), label(versus), figure, arms),
        caution=_caution(effect, ends),
        arms=arms,
        ratios=_ratios(effect),
        levels=_levels(effect),
    )


def estimate_and_interval(effect: Effect, spread: float | None = None) -> tuple[str, str]:
    """Returns the estimate and "lower to upper", with the same digits; empty without interval.

    Arguments:
        effect: The effect.
        spread: What the digits are cut by; the effect's own by default.
    """
    estimate = effect.estimate or 0.0
    spread = spread_of(effect) if spread is None else spread
    write = points if effect.event is not None else rounded
    if effect.interval is None:
        return write(estimate, spread), ""
    lower, upper = effect.interval
    return write(estimate, spread), f"{write(lower, spread)} to {write(upper, spread)}"


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
    if effect.event is None:
        return f"difference in the mean of {effect.outcome}"
    return f"percentage points in the risk of {effect.outcome} = {label(effect.event)}"


def _level(effect: Effect) -> str:
    return f"{100 * (effect.level or 0.0):g} %"


def _sentence(
    effect: Effect,
    treatment: str,
    value: str,
    versus: str,
    figure: str,
    arms: tuple[tuple[str, str], ...],
) -> str:
    what = f"the mean of {effect.outcome}"
    size = figure.lstrip("\N{MINUS SIGN}")
    if effect.event is not None:
        what = f"the risk of {effect.outcome} = {label(effect.event)}"
        size += " percentage points"
    start = f"If everybody had {treatment} = {value} rather than {versus}, {what} would be"
    if not figure.strip("\N{MINUS SIGN}0.,"):
        return f"{start} the same, {arms[0][1]}, as far as these digits tell."
    way = "lower" if figure.startswith("\N{MINUS SIGN}") else "higher"
    return f"{start} {size} {way}: {arms[0][1]} rather than {arms[1][1]}."


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
