"""The worlds of the study, a family a file; `load_scm` builds one by its name.

To add a world, write a function that returns it and add a line to `SCMS`: every law in
study/tests/test_worlds.py then holds or fails for it by name.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from misscnf import InputError
from misscnf_study.worlds.alpha import chain_alpha, collider_alpha
from misscnf_study.worlds.backdoor import backdoor_nlin
from misscnf_study.worlds.chain import chain_lin, chain_nlin
from misscnf_study.worlds.chain_d import chain_d, chain_d_lin
from misscnf_study.worlds.chains import chain4_lin, chain5_lin
from misscnf_study.worlds.clinic import clinic
from misscnf_study.worlds.collider import collider_lin, collider_nlin, collider_nlin_unit
from misscnf_study.worlds.diamond import diamond_nlin
from misscnf_study.worlds.equations import Equation, linear
from misscnf_study.worlds.fork import fork_lin, fork_nlin
from misscnf_study.worlds.odd_noise import bimodal, heteroscedastic
from misscnf_study.worlds.simpson import simpson_nlin, simpson_symprod
from misscnf_study.worlds.triangle import triangle_lin, triangle_nlin, triangle_nlin_code
from misscnf_study.worlds.world import World

__all__ = ["load_scm", "World", "SCMS", "MAIN", "Equation", "linear"]

SCMS: dict[str, Callable[..., World]] = {
    "chain_lin": chain_lin,
    "chain_nlin": chain_nlin,
    "fork_lin": fork_lin,
    "fork_nlin": fork_nlin,
    "collider_lin": collider_lin,
    "collider_nlin": collider_nlin,
    "collider_nlin_unit": collider_nlin_unit,
    "triangle_lin": triangle_lin,
    "triangle_nlin": triangle_nlin,
    "triangle_nlin_code": triangle_nlin_code,
    "chain_alpha": chain_alpha,
    "collider_alpha": collider_alpha,
    "chain_d": chain_d,
    "chain_d_lin": chain_d_lin,
    "chain4_lin": chain4_lin,
    "chain5_lin": chain5_lin,
    "simpson_nlin": simpson_nlin,
    "simpson_symprod": simpson_symprod,
    "diamond_nlin": diamond_nlin,
    "backdoor_nlin": backdoor_nlin,
    "heteroscedastic": heteroscedastic,
    "bimodal": bimodal,
    "clinic": clinic,
}
"""Every world by its name."""

MAIN = (
    "chain_lin",
    "chain_nlin",
    "fork_lin",
    "fork_nlin",
    "collider_lin",
    "collider_nlin",
    "triangle_lin",
    "triangle_nlin",
)
"""The eight worlds of the main experiment."""

_NUMBERED: dict[str, tuple[str, Callable[[str], Any]]] = {
    "chain_alpha": ("alpha", float),
    "collider_alpha": ("alpha", float),
    "chain_d": ("d", int),
    "chain_d_lin": ("d", int),
}
"""The option that a number at the end of a name stands for, as in chain_alpha_0.25."""


def load_scm(name: str, **options: Any) -> World:  # noqa: ANN401 - each world has its own
    """Builds a world.

    Arguments:
        name: A key of `SCMS`; a number may follow where the world has one, as in
            chain_alpha_0.25, chain_d_64 or chain_d_lin_64.
        options: The options of the world's function, such as ``d`` and ``seed``.

    Raises:
        InputError: If there is no such world, or it has no such option.

    Example:
        >>> load_scm("chain_alpha_0.25").graph
        CausalGraph(3 nodes: x1 → x2; x2 → x3)
    """
    family, numbered = _split(name)
    for option in numbered.keys() & options.keys():
        raise InputError(f"the name {name!r} already gives {option}; leave the option out.")
    known = inspect.signature(SCMS[family]).parameters
    for option in options:
        if option not in known:
            has = f"its options are {', '.join(known)}." if known else "it has none."
            raise InputError(f"the world {family!r} has no option {option!r}; {has}")
    return SCMS[family](**numbered, **options)


def _split(name: str) -> tuple[str, dict[str, Any]]:
    """Splits a name into its key in `SCMS` and what the number at its end says."""
    if name in SCMS:
        return name, {}
    family, _, number = name.rpartition("_")
    if family in _NUMBERED:
        option, read = _NUMBERED[family]
        try:
            return family, {option: read(number)}
        except ValueError:
            raise InputError(
                f"in the name {name!r}, {number!r} should be a number, the {option} of {family}."
            ) from None
    close = difflib.get_close_matches(name, SCMS)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(SCMS)}."
    raise InputError(f"there is no world {name!r}; {hint}")
