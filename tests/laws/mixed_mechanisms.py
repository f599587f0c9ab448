"""The table of laws with point masses: a line here, and every law holds or fails for it."""

from misscnf.data import domains as kinds
from misscnf.data.scales import Unit
from misscnf.mechanisms import Semicontinuous

ZEROS = kinds.Semicontinuous(1.0, 2.0, (0.0,), Unit(0.5, 0.8, "log"), floor=0.0)
SHARE = kinds.Semicontinuous(0.5, 0.3, (0.0, 1.0), Unit(0.1, 1.2, "logit"), 0.0, 1.0)
CLIPPED = kinds.Semicontinuous(0.5, 0.3, (0.0, 1.0), Unit(0.5, 0.25), 0.0, 1.0)
CENSORED = kinds.Semicontinuous(1.0, 1.0, (0.0,), Unit(1.2, 0.8), floor=0.0)
CEILING = kinds.Semicontinuous(80.0, 15.0, (100.0,), Unit(75.0, 12.0), ceiling=100.0)
INSIDE = kinds.Semicontinuous(1.0, 2.0, (-1.0, 0.0), Unit(1.0, 2.0))

POINT_MASSES = {
    "zeros and a logarithm": lambda p: Semicontinuous(p, ZEROS),
    "zeros and a logarithm, network": lambda p: Semicontinuous(p, ZEROS, (8, 6)),
    "a share": lambda p: Semicontinuous(p, SHARE),
    "clipped": lambda p: Semicontinuous(p, CLIPPED),
    "clipped, network": lambda p: Semicontinuous(p, CLIPPED, (8,), "relu"),
    "censored": lambda p: Semicontinuous(p, CENSORED),
    "a ceiling": lambda p: Semicontinuous(p, CEILING),
    "masses inside": lambda p: Semicontinuous(p, INSIDE),
}
"""Name → constructor from the domains of the parents."""
