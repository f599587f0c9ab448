"""`check` of a table over time: families of the graph over time, with counts over visits."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from misscnf import MissCNF, check
from misscnf.cli.app import app
from misscnf.errors import InputError

GRAPH = "L[t-1], A[t-1], time -> L[t]; L[t], sex -> A[t]; L[t], ever(A)[t] -> Y[t]"
ABOUT = {"id": "id", "time": "week", "kinds": {"Y": "event", "A": "binary"}}


@pytest.fixture(scope="module")
def table():
    rng, rows = np.random.default_rng(0), []
    for person in range(500):
        for week in range(4):
            a, y = rng.integers(0, 2), int(rng.random() < 0.1)
            rows.append((person, week, person % 2, rng.normal(), a, y))
            if y or rng.random() < 0.1:
                break
    return pd.DataFrame(rows, columns=["id", "week", "sex", "L", "A", "Y"])


def test_families_are_counted_over_the_visits_that_share_them(table):
    holed = table.copy()
    holed.loc[holed["week"] == 1, "L"] = np.nan
    report = check(holed, GRAPH, **ABOUT)
    lines = report.families.set_index("family")
    assert list(lines.index) == ["sex", "L[0]", "L[t]", "A[t]", "Y[t]"]
    there = holed["week"].value_counts()
    assert lines.loc["A[t]", "rows"] == len(holed)
    assert lines.loc["A[t]", "whole"] == len(holed) - there[1]
    later = holed.set_index(["id", "week"])["L"].notna().unstack(fill_value=False)
    assert lines.loc["L[t]", "rows"] == len(holed) - there[0]
    assert lines.loc["L[t]", "whole"] == (later[2] & later[3]).sum()
    assert lines.loc["L[t]", "visits"] == (1, 2, 3)
    assert lines.loc["L[t]", "few at"] == (1, 2)
    assert report.visits["there"].tolist() == there.sort_index().tolist()
    assert report.visits["seen last"].sum() == 500


def test_places_without_a_family_are_named_in_the_words_of_the_template(table):
    holed = table.assign(A=table["A"].astype(float))
    holed.loc[(holed["week"] > 1) & (holed["L"] > 0.3), "A"] = np.nan
    report = check(holed, GRAPH, **ABOUT)
    assert not report.ok
    assert "A[t]" in report.uncovered
    assert "never seen together where" in str(report)
    assert "L[t] is above 0.3" in str(report)


def test_beside_a_hidden_cause_families_are_those_of_the_columns(table):
    plain, told = "L[t-1], A[t-1] -> L[t]; L[t] -> A[t]; sex -> L[t]", dict(ABOUT, kinds=None)
    without = check(table, plain, ("A", "L"), **told)
    beside = check(table, f"{plain}; u -> L[t]; u -> sex", ("A", "L"), latent=["u"], **told)
    same = ["family", "rows", "shown", "whole", "status"]
    own = without.families.set_index("family")
    for line in beside.families[same].to_dict("records"):
        name = line.pop("family")
        assert line == own.loc[name, list(line)].to_dict()
    assert beside.ok
    assert "no hidden cause leads to A itself" in str(beside)
    led = check(table, f"{plain}; u -> L[t], A[t]", ("A", "L"), latent=["u"], **told)
    assert led.confounded == ("u",)
    assert not led.ok
    assert not led.uncovered
    assert "leads to A itself" in str(led)
    json.dumps(led.to_dict())


def test_losses_are_told_as_in_a_wide_table_by_the_visit_that_tells_most(table):
    """A shadow variable at one visit tells the slope that all of them share."""
    rng = np.random.default_rng(1)
    seen = table.loc[:, ["id", "week", "sex", "L"]]
    seen["L"] = seen["L"].mask(rng.random(len(seen)) < 0.3)
    seen = seen[seen["week"] < 3]
    report = check(seen, "L[t-1], sex -> L[t]", id="id", time="week", loss={"L": ["L[t]"]})
    wide = seen.pivot(index="id", columns="week", values="L").add_prefix("L")
    wide = wide.join(seen.groupby("id")["sex"].first())
    graph = "L0, sex -> L1; L1, sex -> L2; sex -> L0"
    each = check(wide, graph, loss={name: [name] for name in ("L0", "L1", "L2")}).recovery
    assert {one.by for one in each} == {"shadow"}
    assert [(one.by, one.shadow) for one in report.recovery] == [("shadow", "sex")]
    assert "Its mechanism is that of 3 visits" in str(report)
    alone = check(seen, "L[t-1] -> L[t]", id="id", time="week", loss="self")
    assert [one.by for one in alone.recovery] == ["shape", "shape"]  # L[0] has no L[t-1]
    assert alone.to_dict()["losses"][0]["identified"] is False


def test_an_effect_needs_the_families_on_its_ways(table):
    report = check(table, GRAPH, ("A", "Y"), **ABOUT)
    assert list(report.families["family"]) == ["L[0]", "L[t]", "Y[t]"]
    assert report.ok
    assert "identified by the g-formula" in str(report)
    nothing = check(table, GRAPH, ("Y", "A"), **ABOUT)
    assert "By the graph Y has no effect on A" in str(nothing)
    with pytest.raises(InputError, match="no column 'dose'"):
        check(table, GRAPH, ("dose", "Y"), **ABOUT)


def test_what_comes_after_is_no_hole_in_the_table_of_kinds_either(table, tmp_path):
    holed = table.copy()
    holed.loc[holed.index[::7], "L"] = np.nan
    model = MissCNF(GRAPH, "linear", progress=False, **ABOUT).fit(holed)
    report, kinds = check(holed, GRAPH, **ABOUT), model.panel_.described(model.kinds_)
    holes = dict(zip(kinds["column"], kinds["holes"], strict=True))
    last = holed.groupby("id")["week"].max()  # everybody has A and Y in their last row
    assert holes == {"sex": 0, "L": int(holed["L"].isna().sum()), "A": 0, "Y": 0}
    cells = 3 * int((last + 1).sum())  # of L, A and Y
    told = (report.visits["there"] * 3 * report.visits["share of holes"]).sum()
    assert told == pytest.approx(holes["L"])
    assert told < cells
    model.save(tmp_path / "m")
    assert MissCNF.load(tmp_path / "m").kinds_.equals(model.kinds_)


def test_of_two_events_at_a_visit_the_second_is_no_hole():
    rows = [(who, week, who % 2, 0, 0) for who in range(40) for week in range(3)]
    table = pd.DataFrame(rows, columns=["id", "week", "A", "D", "Y"])
    last = table["week"] == 2
    table.loc[last & (table["id"] % 4 == 0), "D"] = 1
    table.loc[last & (table["id"] % 4 == 1), "Y"] = 1
    about = dict(ABOUT, kinds={"D": "event", "Y": "event", "A": "binary"})
    report = check(table, "A -> D[t]; A -> Y[t]", **about)
    assert report.visits["share of holes"].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("effect", [("A", "nope"), ("nope", "L")])
def test_a_name_that_is_not_there_is_answered_by_the_columns_over_time(table, effect):
    with pytest.raises(InputError, match="no column 'nope'; it has 'sex', 'L', 'A', 'Y'"):
        check(table, GRAPH, effect, **ABOUT)


def test_a_fitted_model_checks_by_its_own_graph(table):
    about = {name: ABOUT[name] for name in ("id", "time", "kinds")}
    model = MissCNF(GRAPH, "linear", progress=False, **about).fit(table)
    assert str(model.check(table, ("A", "Y"))) == str(check(table, GRAPH, ("A", "Y"), **ABOUT))


def test_the_command_checks_over_time(table, tmp_path):
    table.to_csv(tmp_path / "long.csv", index=False)
    (tmp_path / "kinds.json").write_text(json.dumps(ABOUT["kinds"]))
    words = ["check", str(tmp_path / "long.csv"), "--graph", GRAPH, "--id", "id", "--time", "week"]
    words += ["--kinds", str(tmp_path / "kinds.json"), "--effect", "A:Y"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "500 people, 4 visits" in result.output
    assert json.loads(CliRunner().invoke(app, [*words, "--json"]).output)["ok"] is True
    result = CliRunner().invoke(app, [*words, "--latent", "u"])
    assert result.exit_code == 2
