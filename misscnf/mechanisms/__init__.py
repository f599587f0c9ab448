"""The kinds of mechanism a node can have, one a file; all share the three verbs of `base`."""

from misscnf.mechanisms.affine import Affine
from misscnf.mechanisms.base import LinearForm, Mechanism, standard_normal_log_prob
from misscnf.mechanisms.conditioner import Conditioner
from misscnf.mechanisms.gaussian import Gaussian
from misscnf.mechanisms.rescaled import Rescaled
from misscnf.mechanisms.spline import Spline

__all__ = [
    "Mechanism",
    "Gaussian",
    "Spline",
    "Affine",
    "Rescaled",
    "Conditioner",
    "LinearForm",
    "MECHANISMS",
    "standard_normal_log_prob",
]

MECHANISMS: dict[str, type[Mechanism]] = {
    "gaussian": Gaussian,
    "spline": Spline,
    "affine": Affine,
}
"""The mechanisms that a saved model may name."""
