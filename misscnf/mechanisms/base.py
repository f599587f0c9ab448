r"""What a node is: a conditional law and the map from its noise to its value.

A mechanism is p(x_i | x_pa(i)) together with a strictly monotone x_i = f_i(u_i; x_pa(i)),
u_i ~ N(0, 1) (paper, Section 2, "Causal normalizing flows"). It has three verbs,

    log_prob(x, parents)    log p(x_i | x_pa(i))
    generate(u, parents)    x_i from its noise
    abduct(x, parents)      u_i from its value

and little else: sampling, interventions, counterfactuals and the observed-data likelihood are
sweeps through the graph that use these three. The true SCMs of the study and the learned flow
are made of the same kind of object.

Where the value is discrete, many noises make it: f_i is a step function, `abduct` draws one of
them from p(u_i | x_i, x_pa(i)), and a node without an order needs several numbers of noise, one a
category. Integrals only need the law: `draw` makes a value of it from one number, whatever the
size of the noise.

Shapes: x and u are (...), parents is (..., p); leading axes broadcast, so that parameters that
depend on a row only are computed once and shared by its draws. Noise of size k > 1 is (..., k).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import torch
from torch import Generator, Tensor, nn

from misscnf.data.domains import Continuous, Domain
from misscnf.errors import InputError
from misscnf.mechanisms.conditioner import Conditioner
from misscnf.mechanisms.encoding import Parents, read_parents, write_parents

if TYPE_CHECKING:
    from misscnf.mechanisms.gaussian import LinearMean

__all__ = ["Growth", "LinearForm", "Mechanism", "Mixture", "NoiseSpline", "Shape"]
__all__ += ["standard_normal_log_prob"]

Growth = Literal["network", "curve", "products", "scale", "spline"]
"""What a mechanism may grow into: a network, a curve or products of two parents of its mean (or
logits), a network of its scale, a spline of its noise."""


def standard_normal_log_prob(u: Tensor) -> Tensor:
    """Log-density of N(0, 1).

    Arguments:
        u: Numbers, (...).

    Returns:
        Their log-densities, (...).

    Example:
        >>> round(standard_normal_log_prob(torch.tensor(0.0)).exp().item(), 4)
        0.3989
    """
    return -0.5 * u * u - 0.5 * math.log(2.0 * math.pi)


class LinearForm(NamedTuple):
    """A linear-Gaussian mechanism, x = intercept + weights · parents + offset + scale · u.

    Example:
        >>> from misscnf.mechanisms import Gaussian
        >>> law = Gaussian(2)
        >>> law.initialise(torch.Generator().manual_seed(0))
        >>> form = law.linear_form()
        >>> form.weights.shape, form.offset is None
        (torch.Size([2]), True)
    """

    intercept: Tensor
    """()"""
    weights: Tensor
    """(p,), zero for discrete parents"""
    scale: Tensor
    """()"""
    offset: Callable[[Tensor], Tensor] | None = None
    """What discrete parents add, as a function of all parents (..., p); None where there are none.
    The values of continuous parents do not matter to it."""
    slopes: Callable[[Tensor], Tensor] | None = None
    """What discrete parents add to the weights, likewise, (..., p); None where it is nothing."""
    held: tuple[int, ...] = ()
    """The places of continuous parents along which it bends: it is a line in the others wherever
    these are shown. Offset and slopes read them as they read discrete parents."""


class NoiseSpline(NamedTuple):
    """The spline of a mechanism's noise, the same for all rows.

    Example:
        >>> from misscnf.mechanisms import Spline
        >>> found = Spline(1).noise_spline()
        >>> residual, log_scale = found.residual(torch.tensor([1.5]), torch.zeros(1, 1))
        >>> residual.tolist()  # before any fit: mean 0, scale 1
        [1.5]
    """

    law: Mechanism
    """the law of the residual (x − m) / exp(s), without parents"""
    parameters: list[Tensor]
    """what makes the spline"""
    residual: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    """own values and parents → residuals and log-scales"""


class Mixture(NamedTuple):
    """A law with point masses, at some parents: these, and the rest by a noise of its own.

    Example:
        >>> from misscnf.data.domains import Semicontinuous as Domain
        >>> from misscnf.mechanisms import Semicontinuous
        >>> law = Semicontinuous(1, Domain(atoms=(0.0,), floor=0.0))
        >>> found = law.mixture(torch.zeros(1, 1))
        >>> found.atoms.tolist(), found.log_mass.exp().tolist()
        ([0.0], [[0.5, 0.5]])
    """

    log_mass: Tensor
    """(..., A + 1) of the rest and of the A point masses"""
    atoms: Tensor
    """(A,) where these are"""
    rest: Callable[[Tensor], Tensor]
    """a standard normal number → a value of the rest"""


class Mechanism(nn.Module, ABC):
    """A conditional law with its noise map.

    To add a mechanism, implement the three verbs, name it in the class line (a name makes it
    storable, `serves` the law of a kind of column), and add one line to the table in
    `tests/laws/mechanisms.py`. What else it can do it says itself, by the methods below the verbs;
    nobody asks which class it is.

    Example:
        >>> class Shifted(Mechanism):  # x = pa + u, for one parent
        ...     def log_prob(self, x, parents):
        ...         return standard_normal_log_prob(x - parents[..., 0])
        ...
        ...     def generate(self, u, parents):
        ...         return parents[..., 0] + u
        ...
        ...     def abduct(self, x, parents, generator=None):
        ...         return x - parents[..., 0]
        >>> Shifted().abduct(torch.tensor([3.0]), torch.tensor([[1.0]])).tolist()
        [2.0]
    """

    name: ClassVar[str | None] = None
    """What a saved model calls it; None for mechanisms that are not saved."""
    growths: ClassVar[frozenset[Growth]] = frozenset()
    """What it may grow into where held-out rows ask for more."""
    registry: ClassVar[dict[str, type[Mechanism]]] = {}
    """The mechanisms that a saved model may name."""
    by_kind: ClassVar[dict[str, type[Mechanism]]] = {}
    """The mechanism of a node, by the kind of its column; continuous ones have a choice."""

    def __init_subclass__(
        cls, *, name: str | None = None, serves: tuple[str, ...] = (), **rest: object
    ) -> None:
        super().__init_subclass__(**rest)
        cls.name = name
        if name is not None:
            Mechanism.registry[name] = cls
        for kind in serves:
            Mechanism.by_kind[kind] = cls

    @classmethod
    def of_shape(cls, parents: tuple[Domain, ...], domain: Domain, shape: Shape) -> Mechanism:
        """Makes one of a shape, for a node whose values and parents have these domains."""
        raise TypeError(f"{cls.__name__} has no constructor from a shape; implement `of_shape`")

    @property
    def domain(self) -> Domain:
        """What the values can be."""
        return Continuous()

    @property
    def noise_size(self) -> int:
        """How many standard normal numbers make a value."""
        return 1

    @property
    def invertible(self) -> bool:
        """Whether one noise makes a value, and `abduct` finds it."""
        return not self.domain.discrete

    @abstractmethod
    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns log p(x | parents), shape (...)."""

    @abstractmethod
    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns the value that the noise u makes, shape (...)."""

    @abstractmethod
    def abduct(self, x: Tensor, parents: Tensor, generator: Generator | None = None) -> Tensor:
        """Returns the noise that makes the value x, shape (...).

        Where several noises do, one of them is drawn from p(u | x, parents) by the generator.
        """

    def noise_map(self, parents: Tensor) -> Callable[[Tensor], Tensor]:
        """Returns `generate` at some parents, for noise of several kinds one after the other.

        What depends on the parents alone may be computed once.
        """
        return lambda u: self.generate(u, parents)

    def draw(self, score: Tensor, parents: Tensor) -> Tensor:
        """Returns a value of the mechanism's law from one standard normal number, shape (...)."""
        return self.generate(score, parents)

    def mixture(self, parents: Tensor) -> Mixture | None:
        """Returns the point masses of a continuous law, and its rest; None where it has none.

        Integrals take point masses one by one: a step would need many points to be seen well.
        """
        return None

    def support(self, parents: Tensor, tail: float) -> Tensor:
        """Returns how many values 0, 1, … hold all the mass of a discrete law, (...).

        Unbounded laws are cut where the mass beyond falls below `tail`.
        """
        raise TypeError(f"{type(self).__name__} is continuous: its values are not few")

    def spec(self) -> dict[str, Any]:
        """Returns the JSON-friendly arguments that build this mechanism anew.

        As in scikit-learn, each argument of a constructor is an attribute of the same name.
        """
        if self.name is None:
            raise InputError(
                f"{type(self).__name__} has no name to be saved by: it is a view of a mechanism, "
                f"or its class line gives none; save the model that it shows."
            )
        values = {name: getattr(self, name) for name in signature(type(self)).parameters}
        return {name: _plain(value) for name, value in values.items()}

    def linear_form(self) -> LinearForm | None:
        """Returns the coefficients where the mechanism is linear-Gaussian, else None.

        Components of such mechanisms are integrated in closed form.
        """
        return None

    def linear_predictor(self, parents: Tensor) -> Tensor | None:
        """Returns what a generalised linear law is a line in: log-odds, or the log of a mean.

        None where the mechanism is no such law, or more than a line.
        """
        return None

    def linear_mean(self) -> LinearMean | None:
        """Returns the mean where it is linear in coefficients and the noise normal, else None."""
        return None

    def noise_spline(self) -> NoiseSpline | None:
        """Returns the spline of the noise where it is the same for all rows, else None."""
        return None

    @property
    def tail_index(self) -> float:
        """How fast the tails of the noise fall: below 1 it has no mean, below 2 no variance."""
        return math.inf

    @property
    def normal_noise(self) -> bool:
        """Whether x = m(x_pa) + s u with a constant s: noise that may turn out odd."""
        return False

    @property
    def has_network(self) -> bool:
        """Whether networks set some of the parameters, so that it has to be trained."""
        return any(part.hidden for part in self._conditioners().values())

    @property
    def solvable(self) -> bool:
        """Whether its few parameters are solved for at the maximum, and not trained."""
        return not self.has_network

    def _conditioners(self) -> dict[str, Conditioner]:
        return {at: part for at, part in self.named_modules() if isinstance(part, Conditioner)}

    @property
    def curve_size(self) -> tuple[int, ...] | None:
        """Centres, products and basis functions of its curve; None where it has none."""
        curves = [part.curve for part in self._conditioners().values()]
        return next((curve.size for curve in curves if curve is not None), None)

    def interact(self, first: int, second: int) -> bool:
        """Says whether the effect of a parent may depend on another, on the scale of the line."""
        return any(part.interact(first, second) for part in self._conditioners().values())

    def features(self, parents: Tensor) -> Tensor:
        """Returns the parents as numbers, (..., f); none where it has no parents."""
        for part in self._conditioners().values():
            if part.features:
                return part.encoding(parents)
        return parents.new_zeros(*parents.shape[:-1], 0)

    def basis(self, parents: Tensor) -> Tensor:
        """Returns what its mean or logits are linear in, but for networks, (..., f + r)."""
        features = self.features(parents)
        curves = [part.curve for part in self._conditioners().values()]
        found = [curve.basis_functions(features) for curve in curves if curve is not None]
        return torch.cat([features, *found], -1)

    def line_scores(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns ∂ log p / ∂η at each row, η being what parents set by a line, (n, outputs)."""
        moves: list[Tensor] = []

        def move(part: nn.Module, given: object, found: Tensor) -> Tensor:
            moves.append(torch.zeros_like(found, requires_grad=True))
            return found + moves[-1]

        parts = [part for part in self._conditioners().values() if part.features]
        hooks = [part.register_forward_hook(move) for part in parts]
        with torch.enable_grad():
            total = self.log_prob(x, parents).sum()
        for hook in hooks:
            hook.remove()
        if not moves:
            return x.new_zeros(len(x), 0)
        return torch.cat(torch.autograd.grad(total, moves), -1)

    def slopes_on(self, parent: int) -> Tensor | None:
        """Returns the slopes of its first line on a parent's features, (f,); None without one."""
        for part in self._conditioners().values():
            if part.features and part.is_line and part.weight is not None:
                return part.weight.detach()[0, list(part.encoding.places[parent])]
        return None

    def reflect(self, parent: int | None = None) -> None:
        """Reads a hidden parent with the other sign, or has the other sign itself."""
        for part in self._conditioners().values():
            if parent is not None and part.features:
                part.reflect(parent)

    def relabel(self, order: Tensor, parent: int | None = None) -> None:
        """Reads the classes of a hidden parent in another order, or has that order itself."""
        for part in self._conditioners().values():
            if parent is not None and part.features:
                part.relabel(parent, order)

    def with_mean_of(self, other: Mechanism) -> Mechanism:
        """Returns the same law with the mean of another, such as a curve that was chosen anew."""
        raise TypeError(f"{type(self).__name__} has no mean that could be exchanged")

    def lower_bounds(self) -> Mapping[str, float]:
        """Returns the least value of parameters that have one, by name."""
        return {}

    def prior_precision(self) -> Mapping[str, Tensor]:
        """Returns the precision of normal priors around zero, by the parameter's name.

        The weights of curves have one.
        """
        curves = {at: part.curve for at, part in self._conditioners().items()}
        return {
            f"{at}.curve.weight": curve.prior_precision.expand(curve.weight.shape)
            for at, curve in curves.items()
            if curve is not None
        }

    def log_prior(self) -> Tensor | None:
        """Returns the log-density of the parameters up to a constant, (); None without priors."""
        precisions, parameters = self.prior_precision(), dict(self.named_parameters())
        parts = [(tau * parameters[at].square()).sum() for at, tau in precisions.items()]
        return -0.5 * torch.stack(parts).sum() if parts else None

    def stepped(self, steps: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the parameters after a small step, equal to first order to own + step.

        A mechanism may take it where rows know most, so that what they know little of, which
        steps far, does not carry the rest along.
        """
        return {name: own.detach() + steps[name] for name, own in self.named_parameters()}

    def boundary_parameters(self) -> tuple[str, ...]:
        """Returns the parameters that may come to rest at an end of their range.

        Rows then say nothing of them, and a Newton step must not move them.
        """
        return ()

    def initialise(self, generator: Generator) -> None:
        """Draws the hidden layers of all networks."""
        for part in self._conditioners().values():
            part.initialise(generator)

    def start(self, domain: Domain) -> None:
        """Takes over what is known of the column alone, before any row is used."""

    def start_unseen(self, slope: float, parent: int | None = None) -> None:
        """Starts slopes, of one parent or of all, where no row shows the family.

        Zero could be a saddle.
        """
        for part in self._conditioners().values():
            part.start_slopes(slope, parent)

    def first_slope(self, parent: int) -> float:
        """Returns the slope of the line in a parent: on the first of its features."""
        (part, *_) = self._conditioners().values()
        return float("nan") if part.weight is None else part.slope(parent)

    def set_line(self, intercept: float, weights: Sequence[float], scale: float) -> None:
        """Sets the line of one that is linear-Gaussian; others have none to set."""

    def slope_places(self, parent: int) -> list[int]:
        """Returns where the slopes of the line in a parent stand among all parameters in a row."""
        (part, *_), start = self._conditioners().values(), 0
        for parameter in self.parameters():
            if parameter is part.weight:
                break
            start += parameter.numel()
        return [] if part.weight is None else [start + at for at in part.encoding.places[parent]]

    def start_wider(self, line: Mechanism, parents: Sequence[int]) -> None:
        """Takes over a line in some of its parents; slopes on the others are zero."""
        simpler = line._conditioners()
        for name, part in self._conditioners().items():
            if name in simpler:
                part.start_wider(simpler[name], parents)

    def start_narrower(self, line: Mechanism, parents: Sequence[int]) -> None:
        """Takes over a line that has more parents; of these, some are left."""
        wider = line._conditioners()
        for name, part in self._conditioners().items():
            if name in wider:
                part.start_narrower(wider[name], parents)

    def start_from(self, line: Mechanism) -> None:
        """Takes over the parameters of a simpler mechanism that this one extends."""
        simpler = line.state_dict()
        with torch.no_grad():
            for name, tensor in self.state_dict().items():  # parameters, and what a curve rests on
                if name in simpler and simpler[name].shape == tensor.shape:
                    tensor.copy_(simpler[name])


def _plain(value: object) -> object:
    """Returns a constructor's argument as JSON has it."""
    if isinstance(value, Domain):
        return value.to_dict()
    if not isinstance(value, tuple):
        return value
    domains = [part for part in value if isinstance(part, Domain)]
    return write_parents(domains) if domains else list(value)


@dataclass(frozen=True)
class Shape:
    """The mechanism that a node gets, according to what its values can be.

    Example:
        >>> Shape(hidden=(8,)).build(parents=2).has_network
        True
        >>> Shape(hidden=()).build(parents=2).has_network  # a line
        False
    """

    kind: str = "gaussian"
    """What continuous nodes get, by its name: "gaussian", "spline" or "affine"."""
    hidden: tuple[int, ...] = (64, 64, 64)
    """Hidden widths of the network of means or logits; none makes them linear."""
    scale_hidden: tuple[int, ...] | None = None
    """Hidden widths of the network of scales, and of the spacings of levels; None makes them
    constant."""
    activation: Literal["silu", "relu"] = "silu"
    """The activation of all networks."""
    curve: tuple[int, ...] | None = None
    """Centres, products and basis functions of the curve of a mean, or terms and basis functions
    of interactions; None for none."""

    def build(self, parents: Parents, domain: Domain | None = None) -> Mechanism:
        """Makes the mechanism of a node from the domains of its parents and its own."""
        domain = domain or Continuous()
        law = Mechanism.by_kind.get(domain.kind) or Mechanism.registry[self.kind]
        return law.of_shape(read_parents(parents), domain, self)
