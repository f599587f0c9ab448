"""From a line to a parabola (paper, Appendix "Controlled Nonlinearity Study"), three seeds."""

from misscnf_study.suites.suite import Suite

__all__ = ["NONLINEARITY"]

NONLINEARITY = Suite(
    name="nonlinearity",
    about="a chain and a collider, nonlinear by degrees, MCAR and MAR at 30 and 60 %",
    scms=tuple(
        f"{family}_alpha_{alpha}"
        for family in ("chain", "collider")
        for alpha in ("0.00", "0.25", "0.50", "0.75", "1.00")
    ),
    losses=tuple((name, rate) for name in ("mcar", "mar") for rate in (0.3, 0.6)),
    methods=("misscnf", "listwise", "mice"),
    seeds=(0, 1, 2),
)
