r"""Latent nodes: causes that nobody measures.

A hidden cause is a node like any other, whose column is missing in every row, so that its place in
the likelihood is an integral over all its values. It is declared by its name,

    latent=["u"]              a number: its causes, and normal noise of variance one
    latent={"class": 3}       a class with three levels

or drawn: dagitty's `u [latent]`; lavaan's `f =~ x1 + x2`; and `a <-> b` (in lavaan `a ~~ b`),
which is a hidden cause of two nodes that has no other place, and is called `hidden(a, b)`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from misscnf.errors import InputError
from misscnf.graph.indicators import column_of

__all__ = ["Latent", "read_latent", "hidden_cause", "check_latent"]

Latent: TypeAlias = Iterable[str] | Mapping[str, int | None]
"""Names of hidden causes; a number of classes beside a name makes it a class."""


def hidden_cause(one: str, two: str) -> str:
    """Returns what the hidden cause of two nodes is called that `one <-> two` stands for."""
    return f"hidden({', '.join(sorted((one, two)))})"


def read_latent(latent: Latent | None) -> dict[str, int | None]:
    """Returns the classes of each latent node, None where it is a number."""
    if latent is None:
        return {}
    if isinstance(latent, str) or not isinstance(latent, Iterable):
        raise InputError(
            f"latent is a list of names, such as ['u'], or {{'class': 3}} for a class of three "
            f"levels; got {latent!r}."
        )
    found = dict(latent) if isinstance(latent, Mapping) else dict.fromkeys(latent)
    for name, classes in found.items():
        whole = isinstance(classes, int) and not isinstance(classes, bool)
        if classes is not None and not (whole and classes >= 2):
            raise InputError(
                f"the latent node {name!r} has {classes!r} classes; give a whole number of at "
                f"least two; a hidden number has none."
            )
    return found


def check_latent(
    latent: Mapping[str, int | None],
    names: Collection[str],
    edges: Collection[tuple[str, str]],
    others: Collection[str],
) -> None:
    """Refuses latent nodes that are no nodes, have no effect, or are something else too.

    Arguments:
        latent: The latent nodes.
        names: All nodes.
        edges: All arrows.
        others: Members of blocks and auxiliary columns.
    """
    causes = {cause for cause, _ in edges}
    for name in latent:
        if name not in names:
            raise InputError(
                f"latent names {name!r}, which is no node of the graph; draw its arrows, such as "
                f"'{name} -> y', or leave it out."
            )
        if name in others or column_of(name) is not None:
            raise InputError(
                f"{name!r} is given as latent, and is a member of a block, an auxiliary column or "
                f"an indicator of loss too, which all have columns; leave one of the two out."
            )
        if name not in causes:
            raise InputError(
                f"the latent node {name!r} has no children, so no row says anything of it; draw "
                f"what it causes, or leave it out."
            )
