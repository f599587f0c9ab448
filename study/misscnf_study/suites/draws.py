"""How many draws a step needs (paper, Section "Monte Carlo Approximation"): quality and time.

The preset is the paper's, whose draws all come from the prior. With another preset a trial also
takes exactly so many draws from the prior, and does not adapt them.
"""

from misscnf_study.suites.suite import Suite

__all__ = ["DRAWS"]

DRAWS = Suite(
    name="draws",
    about="32 to 1024 draws in a step, MAR at 60 %, by the paper's preset",
    scms=("fork_nlin", "triangle_nlin"),
    more_scms=("triangle_nlin_code",),
    losses=(("mar", 0.6),),
    methods=("misscnf",),
    preset="paper",
    draws=(32, 64, 128, 256, 512, 1024),
)
