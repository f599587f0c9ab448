"""Values lost because of themselves (paper, Section "MNAR Missingness"): nothing is promised."""

from misscnf_study.suites.main import MORE_SCMS, SCMS
from misscnf_study.suites.suite import Suite

__all__ = ["MNAR"]

MNAR = Suite(
    name="mnar",
    about="8 worlds, values lost because of themselves at 30 and 60 %",
    scms=SCMS,
    more_scms=MORE_SCMS,
    losses=(("self_masking", 0.3), ("self_masking", 0.6)),
    methods=("misscnf", "mice"),
)
