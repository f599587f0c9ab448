r"""Numbers as people read them: as many digits as their error leaves, and a proper minus sign.

A number with a spread s is shown to the digit in which s has its second one,

    decimals = 1 − ⌊log10 s⌋,

so that 3.3519 with an interval of width 1.9 is 3.4, and its ends have the same digits.
"""

from __future__ import annotations

import math

from misscnf.data.cells import plain

__all__ = ["rounded", "nearby", "significant", "signed", "whole", "label", "points", "plural"]

MINUS = "\N{MINUS SIGN}"
FEWEST_WITH_COMMA = 10_000


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
    return _tidy_minus(
        f"{shown:,.{max(decimals, 0)}f}" if abs(shown) >= 1e4 else f"{shown:.{max(decimals, 0)}f}"
    )


def nearby(value: float, spread: float) -> float:
    """Returns a short number near a value, within a twentieth of a spread around it."""
    if spread <= 0.0:
        return value
    return round(value, math.ceil(-math.log10(spread / 20.0)))


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


def _tidy_minus(text: str) -> str:
    if float(text.replace(",", "")) == 0.0:
        text = text.lstrip("-")
    return text.replace("-", MINUS)


def signed(text: str) -> str:
    """Puts a plus before a number that has no sign and is not zero."""
    nothing = text.startswith(MINUS) or not text.strip("0.,")
    return text if nothing else f"+{text}"


def whole(count: int) -> str:
    """Returns a whole number, with commas where it is long."""
    text = f"{count:,}" if abs(count) >= FEWEST_WITH_COMMA else str(count)
    return text.replace("-", MINUS)


def points(share: float, spread: float) -> str:
    """Returns a difference of chances in percentage points, without their name."""
    return rounded(100.0 * share, 100.0 * spread)


def label(value: object) -> str:
    """Returns a value of a column as people write it."""
    found = plain(value)
    if found is None or isinstance(found, str | bool):
        return str(value if found is None else found)
    return f"{found:.4g}".replace("-", MINUS)


def plural(count: int, one: str, many: str = "") -> str:
    """Returns a count with its noun, such as "3 rows"."""
    return f"{whole(count)} {one if count == 1 else many or one + 's'}"
