"""The table of mechanisms: a line here, and every law holds or fails for it by name."""

import torch

from misscnf.data.scales import Unit
from misscnf.mechanisms import Affine, Gaussian, Latent, Rescaled, Spline
from misscnf.mechanisms.curve import Curve
from misscnf.mechanisms.interactions import Interactions
from misscnf.model import StructuralModel


def curved(mechanism):
    """Puts radial basis functions and products under each curve, with edges that some values lie
    beyond."""
    generator = torch.Generator().manual_seed(5)
    for curve in (part for part in mechanism.modules() if isinstance(part, Curve)):
        for name in ("centres", "projection", "tilt"):
            buffer = getattr(curve, name)
            buffer.copy_(torch.randn(buffer.shape, generator=generator))
        curve.edges.copy_(torch.tensor([[-1.0], [1.5]]).expand_as(curve.edges))
    return mechanism


def interacting(mechanism):
    """Puts a feature, both sides of a knot and a product of two under each sum of interactions."""
    generator = torch.Generator().manual_seed(6)
    for curve in (part for part in mechanism.modules() if isinstance(part, Interactions)):
        last = curve.tilt.shape[0] - 2
        for place, side, floor in [(0, 1.0, -1.0), (1, 1.0, 0.0), (2, -1.0, 0.0)]:
            curve.side[place, 0], curve.floor[place, 0], curve.ceiling[place, 0] = side, floor, 1.5
            curve.knot[place, 0] = 0.3
        curve.column[2, 1], curve.side[2, 1], curve.floor[2, 1] = last, 1.0, -1.0
        for buffer in (curve.projection, curve.tilt):
            buffer.copy_(torch.randn(buffer.shape, generator=generator))
    return mechanism


MECHANISMS = {
    "gaussian": lambda p: Gaussian(p),
    "gaussian, linear scale": lambda p: Gaussian(p, scale_hidden=()),
    "gaussian, network scale": lambda p: Gaussian(p, scale_hidden=(8,)),
    "gaussian, network mean": lambda p: Gaussian(p, (8, 6)),
    "gaussian, network mean and scale": lambda p: Gaussian(p, (8,), (8,), "relu"),
    "gaussian, curve": lambda p: curved(Gaussian(p, mean_curve=(5, p * (p + 1) // 2, 3))),
    "gaussian, curve, endless": lambda p: curved(
        Gaussian(p, mean_curve=(5, p * (p + 1) // 2, 3, 1))
    ),
    "gaussian, interactions": lambda p: interacting(Gaussian(p, mean_curve=(3, 2))),
    "spline": lambda p: Spline(p),
    "spline, curve": lambda p: curved(Spline(p, mean_curve=(5, p * (p + 1) // 2, 3))),
    "spline, network mean and scale": lambda p: Spline(p, (8,), (8,), bins=5, bound=4.0),
    "spline, network shape": lambda p: Spline(p, (8,), None, (8,)),
    "affine": lambda p: Affine(p),
    "affine, linear": lambda p: Affine(p, ()),
    "latent": lambda p: Latent(p),
    "rescaled gaussian": lambda p: Rescaled(Gaussian(p), Unit(5.0, 3.0), [Unit(2.0, 0.5)] * p),
    "rescaled spline": lambda p: Rescaled(Spline(p, (8,)), Unit(-5.0, 0.3), [Unit(2.0, 4.0)] * p),
}
"""Name → constructor from the number of parents."""


def randomised(mechanism, generator, size=1.0, spread=0.5):
    """Draws all parameters: weights N(0, size²/fan-in), biases N(0, spread²)."""
    with torch.no_grad():
        for parameter in mechanism.parameters():
            scale = size / parameter.shape[1] ** 0.5 if parameter.dim() == 2 else spread
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
    return mechanism


def random_model(graph, make, seed, size=1.0, spread=0.5):
    """A model whose nodes all have one kind of mechanism, with random parameters."""
    generator = torch.Generator().manual_seed(seed)
    mechanisms = [randomised(make(len(p)), generator, size, spread) for p in graph.parents]
    return StructuralModel(graph, mechanisms).requires_grad_(requires_grad=False)
