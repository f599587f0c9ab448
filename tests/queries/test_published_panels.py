"""Published answers over time, where their tables lie beside the repository."""

from pathlib import Path

import pandas as pd
import pytest

from misscnf import MissCNF

TABLE = Path(__file__).parents[3] / "shared" / "data" / "gformula_basicdata_nocomp.csv"
LAST = "L1[t-1], L2[t-1], A[t-1], L3, time"
GRAPH = (
    f"{LAST} -> L1[t]; {LAST}, L1[t] -> L2[t]; {LAST}, L1[t], L2[t] -> A[t]; "
    f"{LAST}, L1[t], L2[t], A[t] -> Y[t]"
)


@pytest.mark.slow
def test_the_survival_example_of_gformula():
    """2,500 people, 7 visits; its models read the mean of a history, ours the visit before."""
    if not TABLE.exists():
        pytest.skip("the example table of gfoRmula is not beside the repository")
    kinds = {"Y": "event", "L3": "continuous"}
    model = MissCNF(GRAPH, "linear", id="id", time="t0", kinds=kinds, progress=False)
    model.fit(pd.read_csv(TABLE))
    published = [({}, 0.504), ({"A": 0}, 0.733), ({"A": 1}, 0.233)]
    for do, risk in published:
        found = model.risk("Y", do=do, draws=50_000).table["risk"].iloc[-1]
        assert found == pytest.approx(risk, abs=0.02), do
