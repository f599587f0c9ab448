"""`check` beside hidden causes: the words, the JSON, the verdict, and no false claims."""

import numpy as np
import pandas as pd
import pytest

from misscnf import InputError, check

MIAO = "u -> t; u -> y; u -> z; u -> w; z -> t; w -> y; t -> y"


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    u, *noise = rng.normal(size=(5, 800))
    z, w = u + noise[0], u + noise[1]
    t = (u + z + noise[2] > 0).astype(int)
    frame = pd.DataFrame({"z": z, "w": w, "t": t, "y": t + u + w + noise[3]})
    frame.loc[rng.random(800) < 0.2, "w"] = np.nan
    return frame


def test_proxies_pass_with_their_assumption(table):
    report = check(table, MIAO, ("t", "y"), latent=["u"])
    assert report.ok
    assert report.estimand.by == "proxies"
    assert "! The effect of t on y is not identified by the graph alone; it is if u" in str(report)
    told = report.to_dict()
    assert told["latent"] == {"u": None}
    assert told["estimand"]["identified"] is False
    assert told["graph"]["y"] == ["u", "t", "w"]


def test_an_effect_by_shape_alone_is_not_ok(table):
    report = check(table, MIAO, ("z", "t"), latent=["u"])
    assert not report.ok
    assert report.family_positivity
    assert "✗ The effect of z on t is not identified without assumptions on u" in str(report)
    assert "hidden causes" in report.glance()[1]


def test_levels_of_proxies_count(table):
    coarse = table.assign(w=(table["w"] > 0).where(table["w"].notna()).astype("boolean"))
    assert check(coarse, MIAO, ("t", "y"), latent=["u"]).estimand.by == "shape"
    assert check(coarse, MIAO, ("t", "y"), latent={"u": 2}).estimand.by == "proxies"


def test_what_hidden_causes_tie_is_no_contradiction(table):
    """Without u, z and w are independent by the graph, and rows deny it; with u nothing is."""
    without = check(table, "z -> t; w -> y; t -> y", ("t", "y"))
    assert {"z", "w"} <= {
        name for line in without.contradictions for name in (line.node, line.other)
    }
    assert check(table, MIAO, ("t", "y"), latent=["u"]).contradictions == ()


def test_without_an_effect_it_says_how_to_ask(table):
    report = check(table, MIAO, latent=["u"])
    assert report.ok
    assert report.estimand is None
    assert "ask for it, effect=(t, y)" in str(report)


@pytest.mark.parametrize(
    ("latent", "said"),
    [
        (["w"], "the table has a column 'w', and the graph says that nobody measures it"),
        ({"u": 161}, "'u' has 161 classes, and the table 800 rows"),
    ],
)
def test_bad_hidden_causes_are_refused(table, latent, said):
    with pytest.raises(InputError, match=said):
        check(table, MIAO, latent=latent)
