"""Pictures of tables with holes, of fits and of answers, on matplotlib.

Each function draws one picture, takes `ax=` and returns its axes. Methods of results call them
(`effect.plot()`, `curve.plot()`, `report.plot()`), and so does the page of `write_report`: what
is drawn is drawn in one place.

    graph, patterns, coverage     what the holes leave to see
    training, noise, imputations  how a fit came about, and whether it fits
    forest, curve, risks          answers
    sensitivity, regimes          how they hang on what was lost
"""

from misscnf.plots.fits import imputations, noise, training
from misscnf.plots.forest import forest
from misscnf.plots.graphs import graph
from misscnf.plots.holes import coverage, patterns
from misscnf.plots.responses import curve, regimes, risks, sensitivity

__all__ = ["forest", "curve", "risks", "sensitivity", "regimes"]
__all__ += ["graph", "patterns", "coverage", "training", "noise", "imputations"]
