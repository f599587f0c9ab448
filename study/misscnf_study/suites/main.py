"""Main study (paper, Section "Performance under MCAR and MAR"): who recovers the law of the data?

Beside the eight worlds of the paper one may ask for the two variants that its printed numbers
seem to come from, and for worlds with confounding and several generations.
"""

from misscnf_study.suites.suite import Suite

__all__ = ["MAIN", "SCMS", "MORE_SCMS"]

SCMS = (
    "chain_lin",
    "fork_lin",
    "collider_lin",
    "triangle_lin",
    "chain_nlin",
    "fork_nlin",
    "collider_nlin",
    "triangle_nlin",
)

MORE_SCMS = (
    "triangle_nlin_code",
    "collider_nlin_unit",
    "chain4_lin",
    "chain5_lin",
    "simpson_nlin",
    "simpson_symprod",
    "diamond_nlin",
    "backdoor_nlin",
    "heteroscedastic",
    "bimodal",
)

MAIN = Suite(
    name="main",
    about="8 worlds, values lost at random (MCAR, MAR) at 30, 60 and 90 %",
    scms=SCMS,
    more_scms=MORE_SCMS,
    losses=tuple((name, rate) for name in ("mcar", "mar") for rate in (0.3, 0.6, 0.9)),
    methods=(
        "misscnf",
        "full",
        "listwise",
        "mean",
        "mice",
        "missforest",
        "missforest_stekhoven",
        "knn",
        "mice_forest",
    ),
)
