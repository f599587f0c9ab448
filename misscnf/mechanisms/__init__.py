"""The laws of a node given its parents, one a file; all share the three verbs of `base`."""

from misscnf.mechanisms.affine import Affine
from misscnf.mechanisms.base import (
    Growth,
    LinearForm,
    Mechanism,
    Mixture,
    NoiseSpline,
    Shape,
    standard_normal_log_prob,
)
from misscnf.mechanisms.categorical import Categorical, GumbelMax
from misscnf.mechanisms.conditioner import Conditioner
from misscnf.mechanisms.count import Count, InverseCount
from misscnf.mechanisms.encoding import Encoding, Parents, read_parents, write_parents
from misscnf.mechanisms.fixed import Fixed
from misscnf.mechanisms.gaussian import Gaussian, LinearMean
from misscnf.mechanisms.held import HeldSlope
from misscnf.mechanisms.latent import Latent
from misscnf.mechanisms.rescaled import Rescaled
from misscnf.mechanisms.semicontinuous import Semicontinuous
from misscnf.mechanisms.spline import Spline
from misscnf.mechanisms.student import Student
from misscnf.mechanisms.threshold import Ordinal, Threshold

__all__ = ["Mechanism", "Gaussian", "Spline", "Affine", "Ordinal", "Categorical", "Count"]
__all__ += ["Semicontinuous", "Student", "Mixture", "Latent", "HeldSlope", "Fixed"]
__all__ += ["Threshold", "GumbelMax", "InverseCount", "Rescaled", "Shape", "Conditioner"]
__all__ += ["Encoding", "Parents", "read_parents", "write_parents", "Growth", "LinearForm"]
__all__ += ["LinearMean", "NoiseSpline", "standard_normal_log_prob"]
