"""What several tests of tables read."""

import pandas as pd
import pytest

HOLE = float("nan")


@pytest.fixture
def frame() -> pd.DataFrame:
    """Three nodes out of order, one column outside the graph, a row of holes only."""
    return pd.DataFrame(
        {
            "y": [10.0, HOLE, 30.0, 50.0],
            "note": ["a", "b", "c", "d"],
            "x": [0.1, HOLE, 0.3, HOLE],
            "t": [1, HOLE, 0, 1],
        },
        index=pd.Index(["ann", "bob", "cleo", "dan"], name="who"),
    )
