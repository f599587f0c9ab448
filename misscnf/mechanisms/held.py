r"""A logistic line with one slope held: what a sensitivity analysis asks the fit to take as given.

    logit P(x = 1 | x_pa) = s z + b + W x_rest

z is one parent in standard deviations of what was seen (the code, where it has two levels), and s
the strength that somebody named. Everything else is learned. s is no parameter: a fit, its
information and its replicates move parameters, so none of them has to know that it is held. (A
term with a known coefficient is an *offset* in a generalised linear model.)
"""

from __future__ import annotations

import torch
from torch import Tensor

from misscnf.mechanisms.base import Mechanism
from misscnf.mechanisms.conditioner import Conditioner
from misscnf.mechanisms.encoding import Encoding, Parents, read_parents
from misscnf.mechanisms.threshold import Threshold

__all__ = ["HeldSlope"]


class HeldSlope(Threshold, name="held slope"):
    """A binary law whose slope on one parent is held.

    Arguments:
        parents: The domains of the parents, or their number.
        place: Which of them is held.
        strength: The log-odds that a standard deviation of it adds.

    Example:
        >>> law = HeldSlope(2, place=0, strength=1.0)  # odds times e a step of the first parent
        >>> (-law.cuts(torch.tensor([[1.0, 0.0]]))).tolist()  # the log-odds
        [[1.0]]
        >>> [name for name, _ in law.named_parameters()]  # of the other parent alone
        ['location.bias', 'location.weight']
    """

    def __init__(self, parents: Parents, place: int, strength: float) -> None:
        super().__init__(levels=2)
        self.parents, self.place, self.strength = read_parents(parents), place, float(strength)
        self._others = [i for i in range(len(self.parents)) if i != place]
        self.location = Conditioner([self.parents[i] for i in self._others], 1)

    def start_from(self, line: Mechanism) -> None:
        """Takes over a line in the other parents, or in all of them."""
        super().start_from(line)
        own, weight = self.location.weight, line.state_dict().get("location.weight")
        encoding = Encoding(self.parents)
        if own is None or weight is None or weight.shape[1] != encoding.features:
            return
        slopes = [f for i in self._others for f in encoding.places[i]]
        with torch.no_grad():
            own.copy_(weight[:, slopes])

    def cuts(self, parents: Tensor) -> Tensor:
        """Returns the one cut point, −logit P(x = 1)."""
        domain, own = self.parents[self.place], parents[..., self.place]
        steps = own if domain.states == 2 else domain.encode(own)[..., 0]
        index = torch.tensor(self._others, device=parents.device, dtype=torch.int64)
        return -(self.location(parents.index_select(-1, index)) + self.strength * steps[..., None])
