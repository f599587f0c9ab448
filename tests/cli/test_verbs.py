"""Each verb: what it prints and writes, in text and as JSON, from files and streams."""

import io
import json
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import misscnf.data.files as files_home
import misscnf.data.table as table_home
from misscnf import MissCNF
from misscnf.cli.app import VERBS
from misscnf.display.digits import with_ends


def read_text(text):
    return pd.read_csv(io.StringIO(text))


def done(result):
    assert result.exit_code == 0, result.stderr
    return result


def as_json(result):
    return json.loads(done(result).stdout)


# ------------------------------------------------------------------------------------- help


@pytest.mark.parametrize("verb", VERBS)
def test_help_fits_a_screen_and_has_an_example(call, verb):
    lines = done(call([verb, "--help"])).stdout.splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 100
    assert lines[-1].strip().startswith(f"Example: misscnf {verb}")


def test_the_list_of_verbs_fits_a_screen(call):
    text = done(call("--help")).stdout
    assert len(text.splitlines()) <= 30
    assert "..." not in text.partition("\n")[2]  # no description is cut
    assert re.fullmatch(r"misscnf \d+\.\d+\.\d+(\.dev\d+)?\n", call("--version").stdout)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_speaks_json_and_can_be_quiet(call, verb):
    text = call([verb, "--help"]).stdout
    assert "--json" in text
    assert "--quiet" in text


# ------------------------------------------------------------------------------------- check


def test_check_says_what_is_covered(call):
    result = done(call("check data.csv --graph graph.dot --effect t:y"))
    assert "The effect of t on y needs" in result.stdout
    assert as_json(call("check data.csv --graph graph.dot --json"))["ok"] is True


def test_check_ends_with_1_where_something_is_not_covered(call, here):
    t = np.random.default_rng(0).normal(size=1000)
    table = pd.DataFrame({"t": t, "y": np.where(t > 1.0, np.nan, t**2)})
    table.to_csv(here / "cut.csv", index=False)
    result = call(["check", "cut.csv", "--graph", "t -> y"])
    assert result.exit_code == 1
    assert "y with its parent t" in result.stdout
    as_text = call(["check", "cut.csv", "--graph", "t -> y", "--json"])
    assert as_text.exit_code == 1
    assert json.loads(as_text.stdout)["ok"] is False


# ------------------------------------------------------------------------------------- fit


def test_fit_says_kinds_with_reasons_and_what_was_chosen(call, here):
    words = "fit data.csv --graph sex->dose --out m --preset linear --seed 3"
    result = done(call(words))
    assert result.stdout == ""
    assert re.search(r"sex +binary +f, m +\d+ +two distinct texts", result.stderr)
    assert "fitted: the linear model" in result.stderr
    assert "wrote the model to m" in result.stderr
    assert MissCNF.load(here / "m").seed == 3
    found = as_json(call(f"{words} --json --quiet"))
    assert (found["chosen"], found["rows"], found["seed"]) == ("linear", 200, 3)
    assert {"column", "kind", "why"} <= found["kinds"][0].keys()


def test_quiet_is_quiet(call):
    result = done(call("fit data.csv --graph age->dose --out m --preset linear --quiet"))
    assert (result.stdout, result.stderr) == ("", "")


def test_fit_takes_kinds_streams_and_any_form_of_graph(call, here):
    (here / "kinds.yaml").write_text("t: continuous\n")
    data = (here / "data.csv").read_bytes()
    words = ["fit", "-", "--graph", "t -> y", "--kinds", "kinds.yaml", "--preset", "linear"]
    found = as_json(call([*words, "--out", "m", "--json"], data))
    assert [row["kind"] for row in found["kinds"]] == ["continuous", "continuous"]


def test_fit_says_where_its_time_went_if_asked(call):
    words = "fit data.csv --graph graph.dot --preset linear --out m --verbose"
    assert re.search(r"\d\.\d s  linear model", done(call(words)).stderr)
    assert "linear model" not in done(call(f"{words} --quiet")).stderr


def test_a_model_that_is_fitted_again_is_replaced(call, here):
    words = ["fit", "data.csv", "--graph", "t -> y", "--out", "model", "--preset", "linear"]
    done(call(words))
    assert MissCNF.load(here / "model").graph_.nodes == ("t", "y")
    assert sorted(path.name for path in (here / "model").iterdir()) == [
        "model.json",
        "parameters.safetensors",
    ]


# ------------------------------------------------------------------------------------- effect


def test_an_effect_is_what_python_says(call, here):
    expected = MissCNF.load(here / "model").effect("y", {"t": 1.0}, {"t": 0.0}, draws=500, seed=2)
    words = "effect model --on y --do t=1 --versus t=0 --draws 500 --seed 2"
    assert done(call(words)).stdout == f"{expected}\n"
    found = as_json(call(f"{words} --json"))
    assert found["estimate"] == expected.estimate
    assert {"lower", "upper", "measure"} <= found.keys()


def test_the_effect_on_a_level(call):
    words = "effect model --on stage --do t=1 --versus t=0 --draws 500"
    early = as_json(call(f"{words} --event early --json"))
    late = as_json(call(f"{words} --event late --json"))
    assert early["event"] == "early"
    assert early["estimate"] == pytest.approx(-late["estimate"])


def test_a_grid_makes_a_curve(call):
    words = "effect model --on y --do dose=0:1:0.25 --do t=1 --versus t=0 --draws 200"
    lines = done(call(words)).stdout.splitlines()
    assert lines[0].startswith("y along dose")
    assert [line.split()[0] for line in lines[2:]] == ["0", "0.25", "0.5", "0.75", "1"]
    curve = as_json(call(f"{words} --json"))["curve"]
    assert [point["dose"] for point in curve] == [0.0, 0.25, 0.5, 0.75, 1.0]
    estimates = [point["estimate"] for point in curve]
    assert np.allclose(np.diff(estimates), estimates[1] - estimates[0])  # a linear model


def test_a_curve_of_levels_has_a_line_a_level(call):
    result = done(call("effect model --on sex --do dose=0:1:1 --draws 50 --event f"))
    assert "risk difference" in result.stdout


# ------------------------------------------------------------------------------------- tables


def test_sample_writes_each_form_of_table(call, here):
    expected = MissCNF.load(here / "model").sample(20, do={"sex": "f"}, seed=1)
    for name, read in {
        "s.csv": pd.read_csv,
        "s.tsv": lambda path: pd.read_csv(path, sep="\t"),
        "s.parquet": pd.read_parquet,
    }.items():
        result = done(call(f"sample model --rows 20 --do sex=f --seed 1 --out {name}"))
        assert (result.stdout, result.stderr) == ("", f"wrote 20 rows to {name}\n")
        pd.testing.assert_frame_equal(read(here / name), expected, check_dtype=False)
    shown = done(call("sample model --rows 20 --do sex=f --seed 1")).stdout
    assert shown == (here / "s.csv").read_text()


def test_json_says_what_was_written(call):
    found = as_json(call("sample model --rows 4 --out s.csv --json"))
    assert found["written"][0]["file"] == "s.csv"
    assert found["written"][0]["rows"] == 4


def test_imputations_are_long_as_in_mice(call, here):
    done(call("impute model data.csv --draws 3 --seed 1 --out c.csv"))
    table, given = pd.read_csv(here / "c.csv"), pd.read_csv(here / "data.csv")
    assert list(table.columns) == [".imp", ".id", *given.columns]
    assert table[".imp"].tolist() == np.repeat([1, 2, 3], 200).tolist()
    assert table[".id"].tolist() == [*range(1, 201)] * 3
    assert not table.isna().any().any()
    for draw, part in table.groupby(".imp"):
        cells = part[given.columns].reset_index(drop=True)
        assert cells.where(given.notna()).astype(object).equals(given.astype(object)), draw
    assert set((here / "c.csv").read_text().split()[1].split(",")[5]) <= {"0", "1"}  # not 1.0


def test_imputations_with_the_original_and_in_files(call, here):
    table = read_text(done(call("impute model data.csv --draws 2 --original")).stdout)
    given = pd.read_csv(here / "data.csv")
    assert table[".imp"].unique().tolist() == [0, 1, 2]
    original = table.loc[table[".imp"] == 0, given.columns]
    pd.testing.assert_frame_equal(original, given, check_dtype=False)
    done(call("impute model data.csv --draws 2 --wide --out c.csv"))
    for draw in (1, 2):
        part = table.loc[table[".imp"] == draw, given.columns].reset_index(drop=True)
        pd.testing.assert_frame_equal(pd.read_csv(here / f"c-{draw}.csv"), part, check_dtype=False)
    assert not (here / "c.csv").exists()


def test_counterfactuals_of_rows_with_holes(call, here):
    data = (here / "data.csv").read_bytes()
    given = pd.read_csv(here / "data.csv")
    one = read_text(done(call("counterfactual model - --do t=0", data)).stdout)
    assert list(one.columns) == list(given.columns)
    assert (one["t"] == 0).all()
    assert one["id"].equals(given["id"])
    assert one["dose"].equals(given["dose"])
    many = read_text(done(call("counterfactual model data.csv --do t=0 --draws 2")).stdout)
    assert list(many.columns) == [".draw", ".id", *given.columns]
    assert len(many) == 400


def test_scores_have_their_errors(call, here):
    table = read_text(done(call("log-prob model data.csv --given age")).stdout)
    assert list(table.columns)[:3] == [".id", "log_prob", "standard_error"]
    expected = MissCNF.load(here / "model").log_prob(here / "data.csv", given=["age"])
    assert np.allclose(table["log_prob"], expected)


def test_scores_of_some_columns(call, here):
    pd.read_csv(here / "data.csv")[["age", "t"]].to_csv(here / "some.csv", index=False)
    result = done(call("log-prob model some.csv --do dose=1"))
    assert "Nodes without a column" in result.stderr
    assert len(read_text(result.stdout)) == 200


# ---------------------------------------------------------------------- intervals and groups


@pytest.mark.slow
def test_an_interval_of_the_command_is_that_of_the_library(call, here):
    ask = "effect model --on y --do t=1 --versus t=0 --interval 0.9 --data data.csv"
    found = as_json(call(f"{ask} --draws 500 --json"))
    model = MissCNF.load(here / "model")
    expected = model.effect(
        "y", {"t": 1}, {"t": 0}, interval=0.9, data=here / "data.csv", draws=500
    )
    assert (found["lower"], found["upper"]) == pytest.approx(expected.interval)
    assert found["level"] == 0.9
    assert "90 % interval" in done(call(f"{ask} --draws 500")).stdout


def test_replicates_are_kept_beside_the_model(call, here, monkeypatch):
    ask = "effect model --on y --do t=1 --versus t=0 --interval 0.9 --draws 500"
    first = done(call(f"{ask} --data data.csv"))
    assert "kept 100 replicates of the fit in model (" in first.stderr
    monkeypatch.setattr(
        "misscnf.queries.asking.replicate_fit", lambda *a, **k: pytest.fail("replicates were made")
    )
    (here / "model" / "answers.json").unlink()  # which would say it without asking the replicates
    again = done(call(ask))
    assert (again.stdout, "kept" in again.stderr) == (first.stdout, False)


def test_the_same_question_is_worked_out_once_and_another_one_is_not_taken_for_it(call, here):
    ask = "effect model --on y --do t=1 --versus t=0 --interval 0.9 --draws 500"
    first = done(call(f"{ask} --data data.csv"))
    path = here / "model" / "answers.json"
    kept = path.read_bytes()
    for words in (ask, f"{ask} --data data.csv"):
        again = done(call(words))
        assert (again.stdout, "asked before" in again.stderr) == (first.stdout, True)
    for other in ("--seed 1", "--where 'age>50'", "--by sex", "--event early", "--json"):
        assert "asked before" not in call(f"{ask} {other}".replace("'", "")).stderr, other
    path.write_bytes(kept.replace(b"90 %", b"99 %"))  # altered: it is asked anew
    again = done(call(ask))
    assert (again.stdout, "asked before" in again.stderr) == (first.stdout, False)
    model = MissCNF.load("model")
    model.seed = 1  # another fit, as far as the files of its folder can tell
    model.save("model")
    path.write_bytes(kept)
    assert "asked before" not in call(f"{ask} --data data.csv").stderr


def test_an_answer_from_another_table_is_not_given_without_it(call, here):
    ask = "effect model --on y --do t=1 --versus t=0 --interval 0.9 --draws 500"
    done(call(f"{ask} --data data.csv"))
    (here / "model" / "answers.json").unlink()
    pd.read_csv("data.csv").head(150).to_csv("other.csv", index=False)
    other = done(call(f"{ask} --data other.csv"))
    again = call(f"{ask} --data other.csv")
    assert "not the one that the model was fitted to" in other.stderr
    assert "not the one that the model was fitted to" in again.stderr  # a warning is said again
    assert "asked before" not in call(ask).stderr


def test_what_was_answered_waits_for_no_torch(call, here):
    ask = "effect model --on y --do t=1 --versus t=0 --interval 0.9 --draws 500"
    first = done(call(f"{ask} --data data.csv"))
    code = "import sys\nfrom misscnf.cli.app import app\ntry:\n    app(sys.argv[1:])\n"
    code += "except SystemExit:\n    assert 'torch' not in sys.modules\n    raise"
    again = subprocess.run(
        [sys.executable, "-c", code, *ask.split()], capture_output=True, text=True
    )
    assert (again.returncode, again.stdout) == (0, first.stdout), again.stderr


def test_a_second_interval_is_about_the_rows_of_the_first(call, here):
    """Rows that deny the law of the covariates are who is averaged over, and go on being so."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    b, t = a + 0.5 * rng.normal(size=300), a + rng.normal(size=300)
    y = t * a + b + rng.normal(size=300)
    pd.DataFrame({"a": a, "b": b, "t": t, "y": y}).to_csv("tied.csv", index=False)
    graph = "a -> t; a, b, t -> y"
    done(call(["fit", "tied.csv", "--graph", graph, "--preset", "linear", "--out", "tied"]))
    ask = "effect tied --on y --do t=1 --versus t=0 --interval 0.9"
    first = done(call(f"{ask} --data tied.csv"))
    assert "over the rows of the table" in first.stdout
    assert "replicates of the fit, with the 300 rows that are averaged over, in" in first.stderr
    assert done(call(ask)).stdout == first.stdout  # the answer that was kept
    (here / "tied" / "answers.json").unlink()
    assert done(call(ask)).stdout == first.stdout  # and the same from the replicates
    (here / "tied" / "replicates.safetensors").unlink()  # what is left holds no row
    assert "give the table of the fit" in done(call("effect tied --on y --do t=1")).stdout
    refused = call("effect tied --on y --do t=1 --population rows")
    assert (refused.exit_code, "needs --data" in refused.stderr) == (2, True)


def test_counterfactuals_of_single_rows_have_intervals(call, here):
    done(call("effect model --on y --do t=1 --interval 0.9 --draws 50 --data data.csv"))
    pd.read_csv("data.csv").head(3).to_csv("three.csv", index=False)
    done(call("counterfactual model three.csv --do t=0 --interval 0.9 --out ends.csv"))
    found = pd.read_csv("ends.csv")
    assert " ".join(found.columns) == "id age sex t dose y y_lower y_upper stage"
    assert (found["y_lower"] < found["y"]).all()
    assert (found["y"] < found["y_upper"]).all()


def test_a_table_is_read_as_the_options_say(call, here):
    table = pd.read_csv("data.csv").fillna({"age": -99, "y": -99})
    table.to_csv("odd.csv", index=False, sep="/", decimal=",")
    told = "--sep / --decimal , --na -99"
    done(call(f"fit odd.csv --graph graph.dot --preset linear --out odd {told}"))
    ask = "effect {} --on y --do t=1 --versus t=0 --draws 50 --interval 0.9 --data"
    first, again = (
        call(ask.format("model") + " data.csv"),
        call(ask.format("odd") + " odd.csv " + told),
    )
    assert done(first).stdout == done(again).stdout
    asked = call("check odd.csv --graph graph.dot --sep / --decimal ,").stderr
    assert "age: -99 stands in" in asked


def test_a_fit_can_bring_its_replicates(call, here):
    fit = "fit data.csv --graph graph.dot --preset linear --replicates --out quick"
    assert "kept 100 replicates of the fit in quick (" in done(call(fit)).stderr
    done(call("effect quick --on y --do t=1 --versus t=0 --interval 0.9 --draws 500"))


def test_groups_and_the_treated(call, here):
    ask = "effect model --on y --do t=1 --versus t=0 --draws 2000 --json"
    group = as_json(call([*ask.split(), "--where", "age > 50"]))
    assert group["group"] == "where age > 50"
    assert group["draws"] < 2000
    assert as_json(call(f"{ask} --treated"))["group"] == "on those with t = 1"


@pytest.mark.slow
def test_groups_plain_estimates_and_one_arm_alone(call, here):
    asked = "effect model --on y --do t=1 --versus t=0 --data data.csv --by sex --beside"
    model, table = MissCNF.load(here / "model"), pd.read_csv(here / "data.csv")
    effect = model.effect("y", {"t": 1}, {"t": 0}, by="sex", data=table)
    crude, complete = model.plain_estimates(effect, table)
    found = as_json(call(f"{asked} --json"))
    assert [line["sex"] for line in found["groups"]["groups"]] == ["f", "m"]
    assert [line["estimate"] for line in found["beside"]] == [crude.estimate, complete.estimate]
    assert found["e_values"][0] == pytest.approx(effect.e_values()[0])
    text = done(call(asked)).stdout
    assert f"crude, {crude.rows} rows: {with_ends(crude.estimate, crude.interval)[0]} (" in text
    assert f"complete cases, {complete.rows} rows: " in text
    assert f"E-value {effect.e_values()[0]:.3g}: a confounder left out" in text
    assert "m against f: equal by construction" in text
    refused = call("effect model --on y --do t=1 --versus t=0 --beside")
    assert (refused.exit_code, "--data" in refused.stderr) == (2, True)
    assert "--beside" in call("effect --help").stdout
    alone = done(call("effect model --on y --statistic median")).stdout
    assert alone.startswith("y without intervention: median ")


def test_a_curve_with_bands(call, here):
    ask = "effect model --on y --do dose=0:2:1 --draws 500 --interval 0.9 --data data.csv"
    curve = as_json(call(f"{ask} --json"))["curve"]
    assert [row["dose"] for row in curve] == [0.0, 1.0, 2.0]
    assert all(row["lower"] <= row["estimate"] <= row["upper"] for row in curve)
    assert "mean_lower" in done(call(ask)).stdout


# ------------------------------------------------------------------------------- report, demo


@pytest.mark.slow
def test_report_writes_a_page(call, here):
    done(call("report model data.csv --effect t:y --interval 0 --out report.html"))
    page = (here / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "<h1" in page
    assert call("report model data.csv --out report.pdf").exit_code == 2
    done(call("report model data.csv --effect t:y --interval 0 --group sex --out groups.html"))
    page = (here / "groups.html").read_text()
    assert "groups=[&#39;sex&#39;]" in page
    for wrong in ("--group sex", "--effect t:y --group nobody"):
        refused = call(f"report model data.csv {wrong} --out wrong.html")
        assert (refused.exit_code, "--group" in refused.stderr) == (2, True)


@pytest.mark.slow
def test_the_demo_is_near_the_published_answer(call, here):
    pytest.importorskip("causaldata")
    found = as_json(call("demo --preset linear --out d --json --quiet"))
    assert abs(found["estimate"] - found["published"]["estimate"]) < 0.5
    assert {"lower", "upper"} <= found.keys()
    assert {"nhefs.csv", "graph.dot", "kinds.json", "model"} <= {
        p.name for p in (here / "d").iterdir()
    }
    words = "fit d/nhefs.csv --graph d/graph.dot --kinds d/kinds.json --preset linear --out m"
    done(call(words))
    again = as_json(call("effect m --on wt82_71 --do qsmk=1 --versus qsmk=0 --json"))
    assert again["estimate"] == pytest.approx(found["estimate"], abs=1e-3)


def test_fit_reads_the_table_once_and_infers_kinds_once(call, monkeypatch):
    counts = Counter()

    def counted(home, name):
        real = getattr(home, name)

        def run(*args, **kwargs):
            counts[name] += 1
            return real(*args, **kwargs)

        monkeypatch.setattr(home, name, run)

    counted(files_home, "_read_file")
    counted(table_home, "choose_columns")
    counted(table_home, "_encode")
    fit = ["fit", "data.csv", "--graph", "age -> y", "--preset", "linear", "--out", "m"]
    result = done(call(fit))
    assert counts == {"_read_file": 1, "choose_columns": 1, "_encode": 1}
    assert result.stderr.count("  kind") == 1  # the table of kinds is shown once


def test_a_note_is_said_once_however_often_it_is_found(call):
    result = call("report model data.csv --effect t:y --out r.html")
    assert result.exit_code == 0, result.stderr
    lines = [line for line in result.stderr.splitlines() if line]
    assert len(lines) == len(set(lines))
    assert sum("not in the graph are ignored" in line for line in lines) == 1


def test_a_table_larger_than_memory_is_fitted_from_disk(call, here):
    lines = ["--graph", "age -> y", "--preset", "linear", "--out"]
    done(call(["fit", "data.csv", *lines, "one"]))
    said = done(call(["fit", "data.csv", *lines, "other", "--memory", "1kB", "--json"]))
    assert json.loads(said.stdout)["rows"] == 200
    assert "200 rows, which are read from disk" in said.stderr
    one, other = (MissCNF.load(here / name).summary() for name in ("one", "other"))
    np.testing.assert_allclose(one["coefficient"], other["coefficient"], rtol=1e-6)
    assert call(["fit", "data.csv", *lines, "more", "--memory", "lots"]).exit_code == 2
    assert not (here / "more").exists()


def test_a_model_remembers_what_stood_for_holes_at_its_fit(call):
    table = pd.read_csv("data.csv", keep_default_na=False).replace({"age": {"": "-99"}})
    table.to_csv("marked.csv", index=False)
    holes = (table["age"] == "-99").sum()
    done(call("fit marked.csv --graph graph.dot --preset linear --na -99 --out marked"))
    filled = read_text(done(call("impute marked marked.csv --draws 1")).stdout)
    assert holes > 20
    assert (filled["age"] != -99).all()
    asked = "effect marked --on y --do t=1 --versus t=0 --interval 0.9 --data marked.csv"
    assert "not the one that the model was fitted to" not in done(call(asked)).stderr
    otherwise = read_text(done(call("impute marked marked.csv --draws 1 --na -98")).stdout)
    assert (otherwise["age"] == -99).sum() == holes  # other marks stand instead
