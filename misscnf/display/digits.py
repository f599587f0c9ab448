r"""How many digits a number with an interval is printed with.

An interval (l, u) around x says how much of x is known: two digits of (u − l) / 2 are enough, and
a third would be false precision. Each of the three numbers has two digits of its own as well,
where these are at most two places further: 0.012 (−0.001 to 0.025) would hide on which side of
zero the end lies. All three have the same places.
"""

from __future__ import annotations

import math

__all__ = ["with_ends"]


def with_ends(number: float, ends: tuple[float, float]) -> tuple[str, str, str]:
    """Returns a number and both ends of its interval as text.

    Example:
        >>> with_ends(3.4462, (2.4361, 4.4551))
        ('3.4', '2.4', '4.5')
        >>> with_ends(0.01161, (-0.001321, 0.02454))
        ('0.0116', '-0.0013', '0.0245')
    """
    half = (ends[1] - ends[0]) / 2.0
    if not (math.isfinite(half) and half > 0.0):
        first, second, third = (f"{one:.4g}" for one in (number, *ends))
        return first, second, third
    least = _places(half)
    own = max(_places(one) for one in (number, *ends))
    places = max(min(max(own, least), least + 2), 0)
    if max(map(abs, (number, *ends))) >= 1e7:
        places, sign = 4, "g"
    else:
        sign = "f"
    first, second, third = (f"{_tidy(one, places):.{places}{sign}}" for one in (number, *ends))
    return first, second, third


def _places(number: float) -> int:
    """Returns after how many decimal places a number has shown two digits."""
    return 0 if number == 0.0 else 1 - math.floor(math.log10(abs(number)))


def _tidy(number: float, places: int) -> float:
    """Returns a number without the sign of a zero."""
    return 0.0 if round(number, places) == 0.0 else number
