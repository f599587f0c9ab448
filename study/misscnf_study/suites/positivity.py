"""Weaker conditions (paper, Section "Robustness to Weaker Recovery Conditions").

Three regimes with about as many cells lost: some rows are complete (MAR at 50 %), no row is but
every causal family is seen everywhere (holds), and families are unseen on half of the support
(violated). There the local KL tells where the error lies.
"""

from misscnf_study.suites.suite import Suite

__all__ = ["POSITIVITY"]

POSITIVITY = Suite(
    name="positivity",
    about="no complete row: families seen everywhere, or unseen on half of the support",
    scms=("chain_lin", "chain_nlin", "fork_lin", "fork_nlin"),
    losses=(("mar", 0.5), ("two_patterns_holds", None), ("two_patterns_violated", None)),
    methods=("misscnf", "full", "mice"),
    curves=True,
)
