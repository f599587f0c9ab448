"""The table of discrete mechanisms: a line here, and every law holds or fails for it by name."""

import torch
from mechanisms import interacting, randomised

from misscnf.data import domains as kinds
from misscnf.data.domains import CONTINUOUS
from misscnf.mechanisms import Categorical, Count, HeldSlope, Ordinal

DISCRETE = {
    "binary": lambda p: Ordinal(p),
    "binary, interactions": lambda p: interacting(Ordinal(p, curve=(3, 2))),
    "binary, network": lambda p: Ordinal(p, 2, (8, 6)),
    "binary, a slope held": lambda p: HeldSlope(p, 0, 0.7) if p else Ordinal(p),
    "ordinal of 3": lambda p: Ordinal(p, 3),
    "ordinal of 3, network": lambda p: Ordinal(p, 3, (8,)),
    "ordinal of 5": lambda p: Ordinal(p, 5),
    "ordinal of 5, network": lambda p: Ordinal(p, 5, (8,), None, "relu"),
    "ordinal of 3, line of spacings": lambda p: Ordinal(p, 3, (), ()),
    "ordinal of 5, network of spacings": lambda p: Ordinal(p, 5, (8,), (8,)),
    "categorical of 2": lambda p: Categorical(p, 2),
    "categorical of 2, network": lambda p: Categorical(p, 2, (8,)),
    "categorical of 3": lambda p: Categorical(p, 3),
    "categorical of 3, interactions": lambda p: interacting(Categorical(p, 3, curve=(3, 2))),
    "categorical of 3, network": lambda p: Categorical(p, 3, (8, 6)),
    "categorical of 6": lambda p: Categorical(p, 6),
    "categorical of 6, network": lambda p: Categorical(p, 6, (8,), "relu"),
    "count": lambda p: Count(p),
    "count, interactions": lambda p: interacting(Count(p, curve=(3, 2))),
    "count, network": lambda p: Count(p, (8,)),
    "count, Poisson": lambda p: Count(p, dispersed=False),
    "count, Poisson, network": lambda p: Count(p, (8, 6), dispersed=False),
}
"""Name → constructor from the domains of the parents."""

BINARY = kinds.Binary(location=0.4, scale=0.49)
ORDINAL = kinds.Ordinal(location=1.3, scale=1.1, levels=4)
CATEGORICAL = kinds.Categorical(3)
COUNT = kinds.Count(location=2.0, scale=1.8, has_zero=True)
POSITIVE_COUNT = kinds.Count(location=4.0, scale=2.0)

PARENTS = {
    "no parents": (),
    "a continuous parent": (CONTINUOUS,),
    "parents of every kind": (BINARY, CONTINUOUS, ORDINAL, CATEGORICAL, COUNT, POSITIVE_COUNT),
}


def values_of(domain, shape, generator):
    """Values that a node of a domain may have: N(0, 1.5²), or any level, or a count below 9."""
    if not domain.discrete:
        return 1.5 * torch.randn(shape, generator=generator)
    low, high = (0, domain.states) if domain.states else (0 if domain.has_zero else 1, 9)
    return torch.randint(low, high, shape, generator=generator).double()


def parents_of(domains, rows, generator):
    """Rows of parents, (rows, p)."""
    columns = [values_of(domain, (rows,), generator) for domain in domains]
    return torch.stack(columns, -1) if columns else torch.zeros(rows, 0)


def random_discrete(name, domains, seed=2):
    """A mechanism of the table with random parameters: counts have means of about 1 to 20."""
    generator = torch.Generator().manual_seed(seed)
    mechanism = randomised(DISCRETE[name](domains), generator)
    if isinstance(mechanism, Count):
        with torch.no_grad():
            mechanism.location.bias += 1.0
            if mechanism.location.weight is not None:
                mechanism.location.weight *= 0.5
            if mechanism.location.curve is not None:
                mechanism.location.curve.weight *= 0.1
    return mechanism
