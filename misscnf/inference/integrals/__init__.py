r"""Integrals over what is hidden, each by the best means its component allows.

For a component c with noise u_c ~ N(0, I) and evidence e(u_c) = Π_{i ∈ O, H_i ⊆ c} φ_i,

    log E_u [e(u_c)]  and draws from  p(u_c | x_O) ∝ N(u_c; 0, I) e(u_c)

come in closed form where all its mechanisms are linear-Gaussian, by adaptive quadrature where one
number is hidden, and by guided quasi-random draws otherwise; the paper's independent draws from
the prior stay available. Each way returns the same thing, a `Integral`: values of the hidden cells
and what they weigh. Another proposal is another function that returns blocks.
"""

from misscnf.inference.integrals.dispatch import integrate
from misscnf.inference.integrals.integral import Effort, Integral, WeightedDraws

__all__ = ["integrate", "Effort", "Integral", "WeightedDraws"]
