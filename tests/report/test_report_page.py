"""What a page says is what the model and the table say, section by section."""

import html
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from small_tables import EVIL, MONEY

import misscnf
import misscnf.data.table as table_home
from misscnf import InputError, MissCNF, check
from misscnf.plots.holes import shown_patterns
from misscnf.report import write_report
from misscnf.report.effects import Question, forest_lines, group_effects, open_question
from misscnf.report.methods import interval_sentence
from misscnf.report.model_checks import integrals
from misscnf.report.pictures import draw_holes, holes_caption
from misscnf.report.settings import EffectRules, FitChecks, Limits

SECTIONS = [
    "trust",
    "effects",
    "sensitivity",
    "methods",
    "holes",
    "positivity",
    "graph",
    "fit",
    "checks",
    "inventory",
    "again",
    "words",
]


def anchors(page):
    return [dict(attributes)["id"] for tag, attributes in page.tags if tag == "h2"]


# ----------------------------------------------------------------------------------- the answer


@pytest.mark.slow
def test_the_sections_come_in_the_order_of_a_reader(answered):
    assert anchors(answered) == SECTIONS
    assert answered.text.index("If everybody had") < answered.text.index("How far to trust it")


def test_the_answer_is_the_models(answered):
    effect = answered.model.effect(
        "y", {"t": 1}, {"t": 0}, interval=0.95, replicates=5, data=answered.df, draws=20_000
    )
    figure = float(re.search(r'class="figure">\+([\d.]+)<', answered.html)[1])
    ends = re.search(r"95 % interval ([\d.]+) to ([\d.]+)", answered.text).groups()
    assert figure == pytest.approx(effect.estimate, abs=0.01)
    assert [float(end) for end in ends] == pytest.approx(effect.interval, abs=0.01)
    assert "If everybody had t = 1 rather than 0, the mean of y would be" in answered.text


def test_effects_in_groups_are_the_models(mixed):
    model, df = mixed
    table = model._read(df)
    question = open_question(Question(model, table, "t", "stage", None, EffectRules()))
    lines = forest_lines(question, group_effects(question))
    found = {(line.heading, line.label): line.answer for line in lines}
    asked = {"event": question.event, "draws": 5_000}
    for (heading, label), where in {
        ("", "those with t = 1"): {"treated": True},
        ("age", "50 or less"): {"where": "age <= 50"},
        ("age", "above 50"): {"where": "age > 50"},
        ("ward", "B"): {"where": "ward == 'B'"},
    }.items():
        expected = model.effect("stage", {"t": 1}, {"t": 0}, **where, **asked).estimate
        assert found[heading, label].estimate == expected, label
    assert found["age", "50 or less"].estimate != found["age", "above 50"].estimate
    assert len(found) <= 10


def test_the_forest_has_all_groups_with_their_intervals(answered):
    (forest,) = answered.alts("Forest plot")
    numbers = re.findall(r"\+([\d.]+) \(([\d.]+) to ([\d.]+)\)", forest)
    assert len(numbers) == 9
    assert len({len(number.partition(".")[2]) for line in numbers for number in line}) == 1
    assert "those with t = 1" in forest
    assert f"{EVIL} above" in forest


def test_groups_may_be_chosen_and_their_differences_are_the_models(mixed, make_page):
    model, df = mixed
    asked = {"effect": ("t", "stage"), "interval": None}
    page = make_page(model, df, "chosen", groups=["ward", "ward"], **asked)
    (forest,) = page.alts("Forest plot")
    assert [f"ward {ward}:" in forest for ward in "ABC"] == [True] * 3
    assert "or less" not in forest
    question = Question(
        model, model._read(df), "t", "stage", None, EffectRules(), groups=("ward",)
    )
    (found,) = group_effects(open_question(question))
    apart = [other.estimate - found.effects["A"].estimate for other in found.effects.values()]
    shown = re.findall(r"ward: ([BC]) against A (\S+) ", page.text)
    numbers = [float(number.replace("\N{MINUS SIGN}", "-")) for _, number in shown]
    assert numbers == pytest.approx([100 * more for more in apart[1:]], abs=0.6)
    assert "groups=['ward']" in html.unescape(page.html)


def test_strata_come_first(mixed):
    """ward has three levels and points to y; age confounds, and no line lets it modify."""
    model, df = mixed
    question = Question(model, model._read(df), "t", "y", None, EffectRules())
    assert [found.by for found in group_effects(question)] == ["ward", "age", EVIL]


@pytest.mark.parametrize(
    ("groups", "effect"), [(["nobody"], ("t", "y")), (["ward"], None), (["t"], ("ward", "y"))]
)
def test_groups_that_are_none_are_refused(mixed, tmp_path, groups, effect):
    model, df = mixed
    rows = df.assign(t=0.0) if groups == ["t"] else df
    with pytest.raises(InputError):
        write_report(model, rows, tmp_path / "page.html", effect=effect, groups=groups)
    assert not (tmp_path / "page.html").exists()


def test_plain_estimates_and_the_e_value_stand_beside_the_answer(answered):
    model, df = answered.model, answered.df
    effect = model.effect(
        "y", {"t": 1}, {"t": 0}, data=df, interval=0.95, replicates=5, draws=20_000
    )
    both = df[["t", "y"]].dropna()
    crude = both["y"][both["t"] == 1].mean() - both["y"][both["t"] == 0].mean()
    shown = re.search(r"Crude (\d+) \+([\d.]+) \(", answered.text).groups()
    assert (int(shown[0]), float(shown[1])) == (len(both), pytest.approx(crude, abs=0.01))
    complete = df[["age", "t", EVIL, "ward", "y"]].dropna()
    assert re.search(rf"Complete cases {len(complete)} \+[\d.]+ \(", answered.text)
    first, end = effect.e_values()
    assert f"{first:.2f} (interval: {end:.2f})" in answered.text


@pytest.mark.slow
def test_groups_that_a_line_cannot_tell_apart_are_no_finding(answered, by_ward):
    sentence = "That is an assumption, not a finding"
    assert sentence in answered.text
    assert "age: above 50 against 50 or less equal by construction: the rows" in answered.text
    assert "age: equal by construction" in answered.alts("Forest plot")[0]
    assert sentence not in by_ward.text


@pytest.mark.slow
def test_a_continuous_treatment_is_compared_between_quartiles_and_along_a_curve(with_a_gap):
    low, high = with_a_gap.df["b"].quantile([0.25, 0.75])
    asked = re.search(r"If everybody had b = ([\d.]+) rather than (.[\d.]+),", with_a_gap.text)
    values = [float(value.replace("\N{MINUS SIGN}", "-")) for value in asked.groups()]
    assert values == pytest.approx([high, low], abs=0.02)
    (curve,) = with_a_gap.alts("Dose-response")
    assert f"{with_a_gap.df['b'].quantile(0.025):.3g}" in curve
    assert f"{with_a_gap.df['b'].quantile(0.975):.3g}" in curve


def test_a_categorical_treatment_is_compared_with_its_most_frequent_level(by_ward):
    (forest,) = by_ward.alts("Forest plot")
    assert "Everybody B against A:" in forest
    assert "Everybody C against A:" in forest
    assert by_ward.alts("Dose-response") == []


def test_an_outcome_of_levels_has_a_chance_for_each(by_ward):
    effect = by_ward.model.effect("stage", {"ward": "B"}, {"ward": "A"}, draws=20_000)
    table = effect.probabilities.set_index("level")
    most = table["difference"].abs().idxmax()
    assert f"percentage points in the risk of stage = {most}" in by_ward.text
    for level in ("early", "middle", "late"):
        shown = re.search(rf"{level} ([\d.]+) % ([\d.]+) % ", by_ward.text).groups()
        chances = 100 * table.loc[level, ["do", "versus"]].to_numpy(dtype=float)
        assert [float(chance) for chance in shown] == pytest.approx(chances, abs=0.6)


def test_without_a_question_a_summary_opens(unasked):
    assert "A causal model of 3 columns" in unasked.text
    assert "If everybody" not in unasked.text
    absent = ("effects", "sensitivity")
    assert anchors(unasked) == [name for name in SECTIONS if name not in absent]


def test_an_effect_that_the_graph_rules_out_is_said_to_be_none(make_page, gap):
    page = make_page(*gap, "none", effect=("c", "a"))
    assert "By the graph, c has no effect on a" in page.text
    assert page.alts("Forest plot") == []


@pytest.mark.parametrize("effect", [("t", "t"), ("t",), "ty", ("t", "nobody")])
def test_a_question_that_is_none_is_refused(mixed, tmp_path, effect):
    with pytest.raises(InputError):
        write_report(*mixed, tmp_path / "page.html", effect=effect)
    assert not (tmp_path / "page.html").exists()


# ----------------------------------------------------------------------------- table and holes


def test_holes_are_counted(answered):
    nodes = list(answered.model.graph_.nodes)
    seen = answered.df[nodes].notna()
    complete = int(seen.all(axis=1).sum())
    assert f"complete rows {complete} (" in answered.text
    (patterns,) = answered.alts("Patterns")
    counts = seen.value_counts()
    assert f"Patterns of holes in {len(counts)} lines" in patterns
    assert f"has {counts.iloc[0]} rows and no hole" in patterns


def test_a_region_without_rows_is_flagged_where_it_is(with_a_gap):
    edge = with_a_gap.df["b"].quantile(0.85)
    assert "Careful" in with_a_gap.text
    assert "Not guaranteed for 1 of 1 family" in with_a_gap.text
    where = float(re.search(r"c b is above ([\d.]+) 0 of", with_a_gap.text)[1])
    assert where == pytest.approx(edge, abs=0.05)
    assert "flagged" in with_a_gap.text
    assert with_a_gap.alts("Share of rows that show c with its parents along b")


def test_a_table_without_a_gap_is_not_flagged(answered):
    assert "flagged" not in answered.text
    assert "Nothing in these rows speaks against it" in answered.text


def test_the_graph_has_the_coverage_of_each_family(answered):
    seen = answered.df.notna()
    (graph,) = answered.alts("The causal graph")
    for node in answered.model.graph_.nodes:
        parents = answered.model.graph_.parents_of(node)
        share = seen[[node, *parents]].all(axis=1).mean()
        causes = ", ".join(parents) or "nothing here"
        assert f"{node}, {100 * share:.0f} % of rows, caused by {causes}" in graph


def test_table_one_counts_rows_and_holes_by_arm(answered):
    df = answered.df
    heads = [f"all ({len(df)})", *(f"t = {k} ({int((df['t'] == k).sum())})" for k in (0, 1))]
    assert all(head in answered.text for head in heads)
    lost = [df["y"].isna().sum(), *(df.loc[df["t"] == k, "y"].isna().sum() for k in (0, 1))]
    assert re.search(" missing " + ".*?".join(rf"\b{n} \([\d.]+ %\)" for n in lost), answered.text)


def test_the_page_says_how_it_was_done(answered, unasked):
    text = answered.text
    assert "The 95 % interval is the estimate ± t·s: s is the spread of 5 replicates" in text
    assert "Newton steps on completions of the rows" in text
    assert f"was fitted to all {len(answered.df)} rows by maximum likelihood" in text
    assert (
        "The effect of t = 1 against t = 0 on the mean of y was computed by the g-formula" in text
    )
    assert "nats Units of log-density" in text
    assert "The effect of" not in unasked.text


def test_no_interval_is_described_where_there_is_none(gap):
    """A fit at no maximum has a doubt in the place of an interval."""
    model, _ = gap
    effect = model.effect("c", {"b": 1.0}, {"b": 0.0})
    doubt = "no interval can be given: the rows leave a direction open."
    none = replace(effect, level=0.95, replicates=100, doubts=(doubt,))
    assert interval_sentence(model, none) == f"N{doubt[1:]}"
    assert interval_sentence(model, effect) == ""
    risk = replace(effect, level=0.95, replicates=100, interval=(0.0, 0.1), event="late")
    assert "interval combines those of both risks" in interval_sentence(model, risk)


def test_long_lists_are_folded(make_page, gap):
    model, df = gap
    page = make_page(model, df, "folded", settings={"limits.most_lines": 1})
    assert re.search(r"And \d+ more", page.text)


# ------------------------------------------------------------------------------ fit and checks


def test_a_linear_fit_says_why_there_is_no_curve(answered):
    assert "networks were not tried" in answered.text
    assert "There is no training curve" in answered.text


@pytest.mark.slow
def test_a_trained_fit_has_its_curve_and_its_comparison(make_page):
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    b = np.sin(2 * a) + 0.3 * rng.normal(size=300)
    df = pd.DataFrame({"a": a, "b": b, "c": b + rng.normal(size=300)})
    settings = {"epochs": 10, "selection.curves": False, "selection.folds": 2}
    model = MissCNF("a -> b; b -> c", settings=settings, progress=False).fit(df)
    assert "b" in model.networks_
    page = make_page(model, df, "trained")
    (curve,) = page.alts("Training curve")
    assert f"held-out rows from {model.history_['validation'].iloc[0]:.3f}" in curve
    assert f"less that of lines is {model.comparison_['elpd_difference']:.3f} ±" in page.text
    assert "Networks for b" in page.text


@pytest.mark.slow
def test_curves_are_named(make_page):
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    df = pd.DataFrame({"a": a, "b": a**2 + 0.3 * rng.normal(size=300)})
    settings = {"selection.folds": 2, "selection.steps": 120}
    model = MissCNF("a -> b", settings=settings, progress=False).fit(df)
    assert model.curves_ == ("b",)
    page = make_page(model, df, "curves")
    assert "Curves for b." in page.text
    assert "There is no training curve" in page.text  # it was solved for: nothing is hidden


def test_every_column_has_its_noise_and_its_ranks(answered):
    kinds = answered.model.kinds_.set_index("column")["kind"]
    for node in answered.model.graph_.nodes:
        levels = kinds[node] in ("binary", "ordinal", "categorical")
        assert bool(answered.alts(f"Quantiles of the noise of {node} ")) != levels
    shown = answered.df[list(answered.model.graph_.nodes)].notna().sum(axis=1)
    assert f"after its causes, in {(shown >= 1).sum()} rows," in answered.text
    assert f"Of {(shown >= 2).sum()} known values" in answered.text


def test_effective_draws_are_told(answered):
    quality = answered.model.log_prob(answered.df, quality=True)
    averaged = (quality["effective_draws"] < float("inf")).sum()
    rules = FitChecks(integral_rows=len(answered.df))
    every = integrals(answered.model, answered.model._read(answered.df), rules, 0)
    assert every.rows - every.exact == averaged
    assert f"rows of {FitChecks().integral_rows} rows by chance were averaged" in answered.text


# ------------------------------------------------------------------- what was done, and how


def test_everything_dropped_or_inferred_is_told(answered):
    assert "1 column not in the graph was left aside: id." in answered.text
    assert "1 row shows none of the model's columns" in answered.text
    for line in answered.model.kinds_.itertuples():
        assert f"{line.column} {line.kind}" in answered.text
        assert line.why in answered.text


def test_levels_that_the_model_does_not_know_are_told(make_page):
    df = pd.DataFrame({"a": ["x", "y"] * 30, "b": [0.0, 1.0, 2.5] * 20})
    model = MissCNF("a -> b", preset="linear", unseen="missing", progress=False).fit(df)
    page = make_page(model, df.assign(a=["z", "x", *df["a"][2:]]), "unseen")
    assert "1 cell of a had a level unknown to the model and became a hole" in page.text


def test_settings_versions_and_seed_are_told(answered):
    for name, value in answered.model.settings_.to_dict().items():
        if not isinstance(value, dict):
            assert re.search(rf"\b{name} ", answered.text), name
    assert f"misscnf {misscnf.__version__}" in answered.text
    assert "Seed of the fit 0" in answered.text


def test_the_recipe_makes_the_model_again(with_a_gap):
    recipe = html.unescape(re.search(r"<pre>(.*?)</pre>", with_a_gap.html, re.DOTALL)[1])
    kept = [
        line for line in recipe.splitlines() if not re.search(r"read_csv|write_report\(", line)
    ]
    scope = {"df": with_a_gap.df}
    exec("\n".join(kept).replace("seed=0", "seed=0, progress=False"), scope)
    asked = ("c", {"b": 1.0}, {"b": 0.0})
    again = scope["model"].effect(*asked, draws=100).estimate
    assert again == pytest.approx(with_a_gap.model.effect(*asked, draws=100).estimate, rel=1e-9)


# -------------------------------------------------------------------------------- one safe file


def test_names_cannot_break_the_page(answered):
    tags = [tag for tag, _ in answered.tags]
    assert "script" not in tags
    assert EVIL in answered.text
    assert MONEY in answered.text
    assert any(EVIL in alt for alt in answered.alts(""))


def test_the_page_needs_nothing_else(answered, by_ward):
    for page in (answered, by_ward):
        for tag, attributes in page.tags:
            for name, value in attributes:
                if name in ("src", "href", "srcset", "action", "data", "poster"):
                    assert value.startswith(("data:", "#")), (tag, name, value[:40])
                assert not name.startswith("on"), (tag, name)
        style = re.search(r"<style>(.*?)</style>", page.html, re.DOTALL)[1]
        assert "url(" not in style
        assert "@import" not in style


@pytest.mark.slow
def test_the_same_model_table_and_seed_give_the_same_bytes(make_page, gap, unasked, tmp_path):
    model, df = gap
    model.save(tmp_path / "model")
    again = make_page(MissCNF.load(tmp_path / "model"), df, "again")
    assert again.html == unasked.html
    assert make_page(model, df, "other", seed=1).html != unasked.html


def test_matplotlib_waits_until_a_page_is_written():
    code = "import misscnf.cli.report, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_the_table_is_read_once_and_digested_once(mixed, tmp_path, monkeypatch):
    model, df = mixed
    counts = Counter()

    def counted(name, real):
        def call(*args, **kwargs):
            counts[name] += 1
            return real(*args, **kwargs)

        return call

    monkeypatch.setattr(table_home, "read_table", counted("read", table_home.read_table))
    monkeypatch.setattr(table_home, "_encode", counted("encoded", table_home._encode))
    monkeypatch.setattr(table_home, "choose_columns", counted("kinds", table_home.choose_columns))
    digests = counted("digest", table_home.hashlib.sha256)
    monkeypatch.setattr(table_home, "hashlib", SimpleNamespace(sha256=digests))
    settings = {"effects.draws": 200, "effects.draws_of_parts": 200}
    write_report(
        model, df, tmp_path / "r.html", effect=("t", "y"), replicates=5, settings=settings
    )
    assert counts == {"read": 1, "encoded": 1, "digest": 1}


@pytest.mark.slow
def test_settings_of_the_page_are_changed_by_name_and_told(mixed, tmp_path):
    model, df = mixed
    path = tmp_path / "r.html"
    settings = {"checks.noise_rows": 60, "identification.regions.share": 0.05}
    write_report(model, df, path, interval=None, settings=settings)
    text = html.unescape(path.read_text(encoding="utf-8"))
    assert "in 60 rows" in text
    assert f'"report.html", settings={settings!r})' in text
    for name, value in settings.items():
        assert f'<th scope="row">report.{name}</th><td>{value}</td>' in text
    with pytest.raises(InputError, match=r"no setting 'noise_row'.*checks\.noise_rows"):
        write_report(model, df, path, settings={"noise_row": 3})


def test_a_wide_table_without_holes_is_drawn():
    names = [f"x{i}" for i in range(35)]
    report = check(pd.DataFrame(np.eye(40, 35), columns=names), "; ".join(names))
    assert draw_holes(report, Limits()).alt.endswith("40 rows and no hole.")


def test_a_hidden_cause_is_no_column_and_no_hole(tmp_path):
    rng = np.random.default_rng(0)
    u, names = rng.normal(size=300), ["a", "b", "c"]
    df = pd.DataFrame({name: u + rng.normal(size=300) for name in names})
    model = MissCNF("u -> a; u -> b; u -> c", "linear", latent=["u"], progress=False).fit(df)
    write_report(model, df, tmp_path / "page.html", interval=None)
    page = (tmp_path / "page.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "300 rows and 3 columns and 1 hidden cause with 0" in page
    assert "u, hidden, caused by nothing here; a, 100 % of rows, caused by u" in page
    assert "The causal graph (3 variables and 1 hidden cause, 3 arrows)" in page
    assert "<td>never seen: integrated over</td>" in page
    assert "not needed" not in page


def test_what_rows_deny_of_the_graph_stands_on_the_page(tmp_path):
    rng = np.random.default_rng(0)
    age = rng.normal(size=300)
    df = pd.DataFrame({"age": age, "sex": age + rng.normal(size=300), "t": rng.normal(size=300)})
    df["y"] = df["t"] + df["age"] + rng.normal(size=300)
    model = MissCNF("age -> y; sex -> y; t -> y", "linear", progress=False).fit(
        df
    )  # no age -> sex
    for name, effect in (("asked", ("t", "y")), ("open", None)):
        write_report(model, df, tmp_path / f"{name}.html", effect=effect, interval=None)
        page = (tmp_path / f"{name}.html").read_text()
        assert "<h3>Rows against the graph</h3>" in page
        assert "independent by the graph, correlated by" in page
    leant = "The answer leans on the first"
    assert leant in (tmp_path / "asked.html").read_text()
    assert leant not in page


def test_of_many_columns_the_picture_of_holes_has_those_that_its_patterns_lack():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 40)), columns=[f"x{j}" for j in range(40)])
    for j in range(40):  # a row each lacks one; many lack the last, which no first 30 would have
        frame.loc[j, f"x{j}"] = np.nan
    frame.loc[50:60, "x39"] = np.nan
    frame.loc[61:65, "x3"] = np.nan
    report = check(frame, {f"x{j}": [] for j in range(40)})
    few, more = Limits(most_patterns=3), Limits(most_columns=2, most_patterns=5)
    assert list(shown_patterns(report, 3, 30).columns) == ["x3", "x39"]
    assert "These rows show all of the other 38 columns." in holes_caption(report, few)
    assert list(shown_patterns(report, 5, 2).columns) == ["x3", "x39"]
    assert "Of 4 columns that these rows lack, the 2 that most" in holes_caption(report, more)
    assert holes_caption(report, Limits(most_columns=40)).endswith("And 29 more.")
