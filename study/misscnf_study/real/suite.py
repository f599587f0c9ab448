r"""Real tables × methods as a suite, and how one of its trials is run."""

from __future__ import annotations

import logging
import time

from misscnf_study.real.methods import METHODS
from misscnf_study.real.tables import QUESTIONS
from misscnf_study.suites import Suite, Trial

__all__ = ["REAL", "measure"]

OWN = "own"
"""The way of losing values: that of the table."""

REAL = Suite(
    name="real",
    about="real tables with a known answer: who holds it?",
    scms=tuple(QUESTIONS),
    losses=((OWN, None),),
    methods=tuple(METHODS),
    seeds=(0,),
)


def measure(trial: Trial) -> dict[str, float]:
    """Asks a method one question; returns the answer, what was found, and processor seconds."""
    question = QUESTIONS[trial.scm]
    df, answer = question.load(trial.seed)
    logger = logging.getLogger("misscnf")
    level = logger.level
    logger.setLevel(logging.ERROR)  # a row has no place for warnings
    started = time.process_time()
    try:
        found = METHODS[trial.method](df, question, trial.seed)
    finally:
        logger.setLevel(level)
    return {
        "answer": answer,
        "estimate": found.estimate,
        "lower": found.lower,
        "upper": found.upper,
        "seconds": time.process_time() - started,
    }
