"""The kinds of mechanism a node can have, one a file; all share the three verbs of `base`."""

from misscnf.mechanisms.affine import Affine
from misscnf.mechanisms.base import (
    Growth,
    LinearForm,
    LinearMean,
    Mechanism,
    NoiseSpline,
    standard_normal_log_prob,
)
from misscnf.mechanisms.categorical import Categorical, GumbelMax
from misscnf.mechanisms.conditioner import Conditioner
from misscnf.mechanisms.count import Count, InverseCount
from misscnf.mechanisms.curve import Curve, extended_products, hinges, radial_basis
from misscnf.mechanisms.encoding import Encoding, Parents, read_parents
from misscnf.mechanisms.gaussian import SMALLEST_LOG_SCALE, Gaussian
from misscnf.mechanisms.rescaled import Rescaled
from misscnf.mechanisms.shape import Shape
from misscnf.mechanisms.spline import Spline
from misscnf.mechanisms.threshold import Ordinal, Threshold

__all__ = [
    "Mechanism",
    "Gaussian",
    "Spline",
    "Affine",
    "Ordinal",
    "Categorical",
    "Count",
    "Threshold",
    "GumbelMax",
    "InverseCount",
    "Rescaled",
    "Conditioner",
    "Curve",
    "Encoding",
    "Parents",
    "read_parents",
    "Growth",
    "LinearForm",
    "LinearMean",
    "NoiseSpline",
    "SMALLEST_LOG_SCALE",
    "Shape",
    "MECHANISMS",
    "standard_normal_log_prob",
    "hinges",
    "radial_basis",
    "extended_products",
]

MECHANISMS = Mechanism.registry
"""The mechanisms that a saved model may name."""
