"""Long chains (paper, Appendix "Larger graph"): every second node is missing in each row."""

from misscnf_study.suites.suite import Suite

__all__ = ["SCALING"]

SCALING = Suite(
    name="scaling",
    about="chains of 4 to 64 nodes, every second one missing",
    scms=("chain_d_4", "chain_d_8", "chain_d_16", "chain_d_32", "chain_d_64"),
    losses=(("alternating", None),),
    methods=("misscnf", "full"),
    seeds=(0, 1, 2),
)
