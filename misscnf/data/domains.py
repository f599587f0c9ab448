r"""What the values of a node can be, as its mechanism and those of its children see them.

Inside a model every value is a number: a continuous column is standardised; a binary, ordinal or
categorical one is the code 0, 1, …, levels − 1 of its level; a count is itself. A domain says
which of these a node has, how many values there are, and by which numbers a child's network or
line reads it:

| parent | features |
|---|---|
| continuous, latent, fixed | z, as it is |
| binary | the code, standardised |
| categorical, K levels | K − 1 indicators, of all levels but the first |
| ordinal, K levels | the code, standardised, and K − 2 indicators, of all levels but the ends |
| count | the count, standardised, and an indicator of zero where both are seen |
| semicontinuous | the number, standardised, and an indicator of each point mass |

So a linear predictor of any of them can be every function of a finite parent, and an order helps a
network where there is one. A new kind of column brings a subclass of `Domain` with its codec.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from misscnf.data.scales import Unit
from misscnf.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Domain", "Continuous", "Binary", "Ordinal", "Categorical", "Count", "Semicontinuous"]
__all__ += ["HeavyTailed", "Latent", "Fixed", "CONTINUOUS"]


@dataclass(frozen=True)
class Domain(ABC):
    """What the values of a node can be; a subclass for each kind of column."""

    kind: ClassVar[str]
    """The name of the kind."""
    discrete: ClassVar[bool] = True
    """Whether single values have probabilities."""
    plain: ClassVar[bool] = False
    """Whether the one number by which a child reads a value is the value itself."""
    by_kind: ClassVar[dict[str, type[Domain]]] = {}
    """Every domain, by the name of its kind."""

    def __init_subclass__(
        cls, kind: str | None = None, *, discrete: bool = True, plain: bool = False
    ) -> None:
        super().__init_subclass__()
        if kind is not None:
            cls.kind, cls.discrete, cls.plain = kind, discrete, plain
            Domain.by_kind[kind] = cls

    @property
    @abstractmethod
    def states(self) -> int | None:
        """How many values there are; None where they have no end."""

    @property
    @abstractmethod
    def features(self) -> int:
        """How many numbers say what a value is."""

    @abstractmethod
    def encode(self, x: Tensor) -> Tensor:
        """Returns these numbers for values (...), shape (..., features)."""

    def nearest(self, x: Tensor) -> Tensor:
        """Returns the possible value nearest to each number (...)."""
        if not self.discrete:
            return x
        return x.round().clamp(0.0, math.inf if self.states is None else self.states - 1.0)

    def one_step(self) -> tuple[float, float]:
        """Returns two values that are one apart: a standard deviation of what was seen, or one."""
        return 0.0, 1.0

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        return {"kind": self.kind, **asdict(self)}

    @staticmethod
    def from_dict(entry: Mapping[str, Any]) -> Domain:
        """Reads what `to_dict` wrote."""
        arguments = {name: value for name, value in entry.items() if name != "kind"}
        return Domain.by_kind[entry["kind"]](**arguments)


@dataclass(frozen=True)
class Continuous(Domain, kind="continuous", discrete=False, plain=True):
    """A standardised number."""

    states = None
    features = 1

    def encode(self, x: Tensor) -> Tensor:
        return x[..., None]


CONTINUOUS = Continuous()


@dataclass(frozen=True)
class HeavyTailed(Continuous, kind="heavy-tailed", discrete=False, plain=True):
    """A standardised number whose tails are too heavy for squares."""


@dataclass(frozen=True)
class Latent(Continuous, kind="latent", discrete=False, plain=True):
    """A number that nobody measures, whose location and scale are a matter of convention."""


@dataclass(frozen=True)
class Fixed(Continuous, kind="fixed", discrete=False, plain=True):
    """A number that is known before anything is measured, such as the time of a visit."""

    value: float = 0.0
    """The number, standardised."""


@dataclass(frozen=True)
class _Numbered(Domain):
    """Values whose code is a number too, standardised where it is read."""

    location: float = 0.0
    """The mean of what was seen."""
    scale: float = 1.0
    """Its standard deviation."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.location) and 0.0 < self.scale < math.inf):
            raise InputError(
                f"values have location {self.location} and scale {self.scale}; both must be "
                f"finite and the scale positive."
            )

    def encode(self, x: Tensor) -> Tensor:
        return ((x - self.location) / self.scale)[..., None]


@dataclass(frozen=True)
class Binary(_Numbered, kind="binary"):
    """Two levels, 0 and 1."""

    states = 2
    features = 1


@dataclass(frozen=True)
class _Levelled(Domain):
    levels: int = 2
    """How many there are."""

    def __post_init__(self) -> None:
        if not isinstance(self.levels, int) or self.levels < 2:
            raise InputError(f"there are {self.levels!r} levels; a column needs two at least.")

    @property
    def states(self) -> int:
        return self.levels

    @property
    def features(self) -> int:
        """One fewer: one level is what the others are compared with."""
        return self.levels - 1


@dataclass(frozen=True)
class Ordinal(_Levelled, _Numbered, kind="ordinal"):
    """Levels in an order."""

    def __post_init__(self) -> None:
        _Levelled.__post_init__(self)
        _Numbered.__post_init__(self)

    def encode(self, x: Tensor) -> Tensor:
        """Returns the code, standardised, and the indicators of levels between the ends."""
        return _joined(super().encode(x), _indicators(x, self.levels - 1))


@dataclass(frozen=True)
class Categorical(_Levelled, kind="categorical"):
    """Levels without an order."""

    def encode(self, x: Tensor) -> Tensor:
        return _indicators(x, self.levels)


@dataclass(frozen=True)
class Count(_Numbered, kind="count"):
    """The numbers 0, 1, 2 and so on."""

    has_zero: bool = False
    """Whether both zero and more are seen: zero may then be a state of its own."""

    states = None

    @property
    def features(self) -> int:
        return 1 + self.has_zero

    def one_step(self) -> tuple[float, float]:
        return self.location, self.location + self.scale

    def encode(self, x: Tensor) -> Tensor:
        number = super().encode(x)
        return _joined(number, (x == 0).to(x)[..., None]) if self.has_zero else number


@dataclass(frozen=True)
class Semicontinuous(_Numbered, kind="semicontinuous", discrete=False):
    """Numbers in the user's units, some of which have a probability of their own."""

    atoms: tuple[float, ...] = (0.0,)
    """These, in their order."""
    rest: Unit = field(default_factory=Unit)
    """The scale on which the law of all other values is a line with normal noise."""
    floor: float | None = None
    """Other values lie above this; None where they have no end."""
    ceiling: float | None = None
    """Other values lie below this."""

    states = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.rest, Mapping):  # as JSON has it
            object.__setattr__(self, "rest", Unit(**self.rest))
        object.__setattr__(self, "atoms", tuple(float(atom) for atom in self.atoms))
        if not self.atoms or any(a >= b for a, b in zip(self.atoms, self.atoms[1:], strict=False)):
            raise InputError(f"point masses are at {self.atoms}; expected numbers in their order.")

    @property
    def features(self) -> int:
        return 1 + len(self.atoms)

    @property
    def ends(self) -> tuple[float, float]:
        """What the other values lie between, both left out."""
        low = -math.inf if self.floor is None else self.floor
        return low, math.inf if self.ceiling is None else self.ceiling

    def at_atom(self, x: Tensor) -> Tensor:
        """Says which of the point masses each value (...) is, (..., atoms)."""
        return x[..., None] == x.new_tensor(self.atoms)

    def encode(self, x: Tensor) -> Tensor:
        return _joined(super().encode(x), self.at_atom(x).to(x))

    def nearest(self, x: Tensor) -> Tensor:
        return x.clamp(*self.ends)

    def one_step(self) -> tuple[float, float]:
        return self.location, self.location + self.scale


def _indicators(x: Tensor, end: int) -> Tensor:
    """Returns whether each value is the level 1, 2, …, end − 1, (..., end − 1)."""
    import torch

    levels = torch.arange(1, end, device=x.device, dtype=x.dtype)
    return (x[..., None] == levels).to(x)


def _joined(*features: Tensor) -> Tensor:
    """Returns features beside one another, (..., all of them)."""
    import torch

    return torch.cat(features, -1)
