"""Published answers over time, where their tables lie beside the repository."""

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

from misscnf import MissCNF

TABLE = Path(__file__).parents[3] / "shared" / "data" / "gformula_basicdata_nocomp.csv"
LAST = "L1[t-1], L2[t-1], A[t-1], L3, time"
BEFORE = "mean(L1)[t-1], mean(L2)[t-1], A[t-1], L3, time"
GRAPH = (
    f"{BEFORE} -> L1[t]; {BEFORE}, L1[t] -> L2[t]; {BEFORE}, L1[t], L2[t] -> A[t]; "
    f"{LAST}, L1[t], L2[t], A[t] -> Y[t]"
)


@pytest.mark.slow
def test_the_survival_example_of_gformula():
    """2,500 people, 7 visits, with its models: covariates read the means of their histories."""
    if not TABLE.exists():
        pytest.skip("the example table of gfoRmula is not beside the repository")
    kinds = {"Y": "event", "L3": "continuous"}
    model = MissCNF(GRAPH, "linear", id="id", time="t0", kinds=kinds, progress=False)
    model.fit(pd.read_csv(TABLE))
    published = [({}, 0.504), ({"A": 0}, 0.733), ({"A": 1}, 0.233)]
    for do, risk in published:
        found = model.risk("Y", do=do, draws=50_000).table["risk"].iloc[-1]
        assert found == pytest.approx(risk, abs=0.02), do


def test_the_longitudinal_example_of_zepid():
    """1,000 people, 3 visits; the answers are those of R's ltmle, with models A + L of each visit.

    Sampling errors are about 0.025, and the two estimators share the sample.
    """
    found = importlib.util.find_spec("zepid")
    if found is None or found.origin is None:
        pytest.skip("the wheel of zepid, which has the table, is not installed")
    wide = pd.read_csv(Path(found.origin).parent / "datasets" / "longitudinal.dat")
    alive, parts = wide["id"] >= 0, []
    for visit in (1, 2, 3):
        part = wide[["id", "W", f"L{visit}", f"A{visit}", f"Y{visit}"]][alive]
        parts.append(part.set_axis(["id", "W", "L", "A", "Y"], axis=1).assign(visit=visit))
        alive &= wide[f"Y{visit}"] == 0
    graph = "W -> L[t]; L[t-1], A[t-1] -> L[t]; L[t], A[t-1] -> A[t]; L[t], A[t] -> Y[t]"
    about = {"id": "id", "time": "visit", "kinds": {"Y": "event", "A": "binary"}, "untied": True}
    model = MissCNF(graph, "linear", progress=False, **about).fit(pd.concat(parts))
    published = {(1, 1, 1): 0.4141, (0, 0, 0): 0.6465, (1, 0, 1): 0.4917, (0, 1, 0): 0.5635}
    for given, risk in published.items():
        do = {f"A[{visit}]": value for visit, value in zip((1, 2, 3), given, strict=True)}
        answer = model.risk("Y", do=do, draws=20_000).table["risk"].iloc[-1]
        assert answer == pytest.approx(risk, abs=0.03), given
