"""The experiments as data, one a file.

To add a suite, write a file that holds a `Suite` and add a line to `SUITES`.
"""

from misscnf.bench.suites.draws import DRAWS
from misscnf.bench.suites.main import MAIN
from misscnf.bench.suites.mnar import MNAR
from misscnf.bench.suites.nonlinearity import NONLINEARITY
from misscnf.bench.suites.positivity import POSITIVITY
from misscnf.bench.suites.scaling import SCALING
from misscnf.bench.suites.suite import Suite, choose, grid
from misscnf.bench.suites.trial import COMPLETE, Trial

__all__ = ["SUITES", "Suite", "Trial", "grid", "choose", "COMPLETE"]

SUITES: dict[str, Suite] = {
    suite.name: suite for suite in (MAIN, POSITIVITY, MNAR, DRAWS, NONLINEARITY, SCALING)
}
"""Every suite by its name."""
