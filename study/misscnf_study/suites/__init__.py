"""The experiments as data, one a file.

To add a suite, write a file that holds a `Suite` and add a line to `SUITES`.
"""

from misscnf_study.suites.draws import DRAWS
from misscnf_study.suites.main import MAIN
from misscnf_study.suites.mnar import MNAR
from misscnf_study.suites.nonlinearity import NONLINEARITY
from misscnf_study.suites.positivity import POSITIVITY
from misscnf_study.suites.scaling import SCALING
from misscnf_study.suites.suite import Suite, choose, grid
from misscnf_study.suites.trial import COMPLETE, Cell, Trial

__all__ = ["SUITES", "Suite", "Trial", "Cell", "grid", "choose", "COMPLETE"]

SUITES: dict[str, Suite] = {
    suite.name: suite for suite in (MAIN, POSITIVITY, MNAR, DRAWS, NONLINEARITY, SCALING)
}
"""Every suite by its name."""
