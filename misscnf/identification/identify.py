r"""ID and IDC: whether the law under an intervention follows from the law of what is shown.

The law under do(t) is a sum of products of c-factors Q[S], the laws of districts S under an
intervention on all other columns (Tian and Pearl 2002; Shpitser and Pearl 2006),

    P(y | do(t)) = Σ_{D∖y} Π_j Q[D_j],     D = ancestors of y without t,  D_j its districts,

and each Q[D_j] is sought inside the district of the whole graph that holds it: sums over
what is no ancestor, and quotients of such sums for a smaller district, until it is reached or
nothing is left to take away. The second is a hedge, and then no formula exists (Huang and
Valtorta 2006): both answers are final.

With conditions, P(y | do(t), z) is reduced first: a condition that acts like an intervention
becomes one (IDC).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from misscnf.identification.projection import MixedGraph, Names

__all__ = ["Conditional", "Expression", "Product", "Quotient", "Sum", "identify"]


@dataclass(frozen=True)
class Conditional:
    """P(of | given), in the law of what is shown."""

    of: str
    given: tuple[str, ...]

    @property
    def names(self) -> Names:
        """What it depends on."""
        return frozenset([self.of, *self.given])

    def __str__(self) -> str:
        return f"P({self.of} | {', '.join(self.given)})" if self.given else f"P({self.of})"


@dataclass(frozen=True)
class Product:
    """A product; one of nothing is 1."""

    parts: tuple[Expression, ...]

    @property
    def names(self) -> Names:
        """What it depends on."""
        return frozenset().union(*(part.names for part in self.parts))

    def __str__(self) -> str:
        return " ".join(map(_in_product, self.parts)) or "1"


@dataclass(frozen=True)
class Sum:
    """A sum over all values of some columns."""

    over: tuple[str, ...]
    of: Expression

    @property
    def names(self) -> Names:
        """What it depends on."""
        return self.of.names.difference(self.over)

    def __str__(self) -> str:
        return f"Σ_{{{', '.join(self.over)}}} {_in_product(self.of)}"


@dataclass(frozen=True)
class Quotient:
    """A quotient."""

    top: Expression
    bottom: Expression

    @property
    def names(self) -> Names:
        """What it depends on."""
        return self.top.names | self.bottom.names

    def __str__(self) -> str:
        return f"[{self.top}] / [{self.bottom}]"


Expression: TypeAlias = Conditional | Product | Sum | Quotient


def _in_product(part: Expression) -> str:
    return f"({part})" if isinstance(part, Sum | Quotient) else str(part)


def identify(
    graph: MixedGraph,
    outcomes: Iterable[str],
    treatments: Iterable[str],
    given: Iterable[str] = (),
) -> Expression | None:
    """Returns P(outcomes | do(treatments), given) in the law of what is shown, if it has it."""
    y, t, z = frozenset(outcomes), frozenset(treatments), frozenset(given)
    for name in sorted(z):
        if graph.separated(name, y, t | (z - {name}), cut_into=t):
            return identify(graph, y, t | {name}, z - {name})
    whole = frozenset(graph.nodes)
    needed = graph.ancestors(y | z, whole - t)
    parts = []
    for district in graph.districts(needed):
        outer = graph.district(min(district), whole)
        factor = _factor(graph, district, outer, _c_factor(graph, outer))
        if factor is None:
            return None
        parts.append(factor)
    joint = _total(graph, needed - y - z, _product(parts))
    return Quotient(joint, _total(graph, y, joint)) if z else joint


def _c_factor(graph: MixedGraph, district: Names) -> Expression:
    """Returns Q of a district of the whole graph."""
    laws = [
        Conditional(name, tuple(graph.ordered(graph.pillow(name))))
        for name in graph.ordered(district)
    ]
    return _product(laws[::-1])


def _factor(graph: MixedGraph, wanted: Names, within: Names, law: Expression) -> Expression | None:
    """Returns Q[wanted] from the law Q[within], None where there is a hedge."""
    above = graph.ancestors(wanted, within)
    if above == wanted:
        return _total(graph, within - wanted, law)
    if above == within:
        return None
    smaller, order = graph.district(min(wanted), above), graph.ordered(above)
    law = _total(graph, within - above, law)
    parts = []
    for place, name in enumerate(order):
        if name in smaller:
            top = _total(graph, frozenset(order[place + 1 :]), law)
            bottom = _total(graph, frozenset(order[place:]), law)
            parts.append(top if bottom == Product(()) else Quotient(top, bottom))
    return _factor(graph, wanted, smaller, _product(parts[::-1]))


def _product(parts: Iterable[Expression]) -> Expression:
    """Multiplies; products inside are opened."""
    flat = [p for part in parts for p in (part.parts if isinstance(part, Product) else (part,))]
    return flat[0] if len(flat) == 1 else Product(tuple(flat))


def _total(graph: MixedGraph, over: Names, law: Expression) -> Expression:
    """Sums over columns, the last first: one that only its own law reads sums to one."""
    if isinstance(law, Sum):
        over, law = over.union(law.over), law.of
    parts = list(law.parts) if isinstance(law, Product) else [law]
    left = []
    for name in reversed(graph.ordered(over)):
        own = [p for p in parts if name in p.names]
        if len(own) == 1 and isinstance(own[0], Conditional) and own[0].of == name:
            parts.remove(own[0])
        else:
            left.append(name)
    found = _product(parts)
    left = [name for name in left if name in found.names]
    return Sum(tuple(graph.ordered(left)), found) if left else found
