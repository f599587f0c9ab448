"""A world with columns of every kind (not in the paper): a small clinic.

Age and sex are roots; the region depends on sex, the severity of a disease on age and region, the
treatment on age, sex and severity, which also confound its effects; the visits follow severity and
sex; the score follows age, severity and treatment, whose effect grows with age; recovery follows
treatment, visits and score.
"""

from __future__ import annotations

import torch
from torch import Tensor

from misscnf import CausalGraph
from misscnf.model import StructuralModel
from misscnf_study.worlds.discrete import Choice, Levels, Tally
from misscnf_study.worlds.equations import Equation, linear
from misscnf_study.worlds.world import World

__all__ = ["clinic"]

EDGES = [
    ("sex", "region"),
    ("age", "severity"),
    ("region", "severity"),
    ("age", "treated"),
    ("sex", "treated"),
    ("severity", "treated"),
    ("sex", "visits"),
    ("severity", "visits"),
    ("age", "score"),
    ("severity", "score"),
    ("treated", "score"),
    ("treated", "recovered"),
    ("visits", "recovered"),
    ("score", "recovered"),
]


def _decades(age: Tensor) -> Tensor:
    """Standardised age."""
    return (age - 50.0) / 12.0


def _severity(age: Tensor, region: Tensor) -> Tensor:
    return 1.2 * torch.tanh(_decades(age)) + 0.8 * (region == 1) - 0.6 * (region == 2)


def _treated(age: Tensor, sex: Tensor, severity: Tensor) -> Tensor:
    return -1.0 + 0.9 * severity - 0.2 * severity**2 + 0.6 * torch.cos(_decades(age)) - 0.5 * sex


def _score(age: Tensor, severity: Tensor, treated: Tensor) -> Tensor:
    z = _decades(age)
    return 10.0 + 2.0 * torch.sin(z) - 1.5 * severity + treated * (2.0 + 1.5 * torch.tanh(z))


def _recovered(treated: Tensor, visits: Tensor, score: Tensor) -> Tensor:
    return -1.0 + 0.8 * treated - torch.tanh(0.5 * (visits - 3.0)) + 0.3 * (score - 9.0)


def clinic() -> World:
    """The world."""
    nodes = ["age", "sex", "region", "severity", "treated", "visits", "score", "recovered"]
    graph = CausalGraph.from_edges(EDGES, nodes=nodes)
    equations = {
        "age": linear(intercept=50.0, scale=12.0),
        "sex": Levels(0.1),
        "region": Choice(0.0, lambda sex: 0.5 - 0.8 * sex, lambda sex: -0.3 + 0.6 * sex),
        "severity": Levels(_severity, cuts=(-0.8, 0.6, 1.8)),
        "treated": Levels(_treated),
        "visits": Tally(lambda sex, severity: 0.4 + 0.35 * severity - 0.3 * sex, dispersion=0.4),
        "score": Equation(_score, scale=1.5),
        "recovered": Levels(_recovered),
    }
    return World(
        name="clinic",
        model=StructuralModel(graph, [equations[node] for node in graph.nodes]),
        interventions=("treated", "severity"),
        description=(
            "z = (age − 50) / 12; age ~ N(50, 12²); sex ~ σ(0.1); "
            "region ∝ exp(0, 0.5 − 0.8 sex, −0.3 + 0.6 sex); "
            "severity: logits with cuts −0.8, 0.6, 1.8 at "
            "1.2 tanh z + 0.8 [region 1] − 0.6 [region 2]; "
            "treated ~ σ(−1 + 0.9 severity − 0.2 severity² + 0.6 cos z − 0.5 sex); "
            "visits ~ NB(exp(0.4 + 0.35 severity − 0.3 sex), 0.4); "
            "score = 10 + 2 sin z − 1.5 severity + treated (2 + 1.5 tanh z) + 1.5 u; "
            "recovered ~ σ(−1 + 0.8 treated − tanh((visits − 3) / 2) + 0.3 (score − 9))"
        ),
        kinds={
            "age": "continuous",
            "sex": "binary",
            "region": "categorical",
            "severity": "ordinal",
            "treated": "binary",
            "visits": "count",
            "score": "continuous",
            "recovered": "binary",
        },
    )
