r"""Integrals over what is hidden, each by the best means its component allows.

For a component c with noise u_c ~ N(0, I) and evidence e(u_c) = Π_{i ∈ O, H_i ⊆ c} φ_i,

    log E_u [e(u_c)]  and draws from  p(u_c | x_O) ∝ N(u_c; 0, I) e(u_c)

come from one of these ways; each returns an `Integral`, and another one is another function that
returns integrals.

closed_form    all mechanisms linear-Gaussian: exact
enumeration    a sum over the joint states of hidden discrete nodes (`states`)
hermite        all but levels among its evidence linear-Gaussian: few points around a closed form
quadrature     one hidden number: adaptive, along a line
importance     several: importance sampling by a `guide` along the graph, made of the `modes` of
               the integrand, which is linearised around them (`linearisation`)
prior          the paper's independent draws from the prior

problem        what every way is given
effort         how hard to work: every number that shapes an integral
dispatch       which way serves which component
integral       what every way returns
sweep          one pass through the graph, which all that draw make
"""

from misscnf.inference.integrals.dispatch import integrate
from misscnf.inference.integrals.effort import (
    ALGORITHM_1,
    Effort,
    Efforts,
    EnumerationRules,
    HermiteRules,
    ImportanceRules,
    QuadratureRules,
)
from misscnf.inference.integrals.integral import Integral, WeightedDraws
from misscnf.inference.integrals.modes import room_for_modes

__all__ = ["integrate", "Integral", "WeightedDraws", "Effort", "EnumerationRules"]
__all__ += [
    "QuadratureRules",
    "HermiteRules",
    "ImportanceRules",
    "Efforts",
    "ALGORITHM_1",
    "room_for_modes",
]
