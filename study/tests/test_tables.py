"""Tables print means and spreads that a hand can check, and hold them against the paper's."""

import math

import pandas as pd
import pytest
from made_up_rows import every_row, one, rows_of, trials
from misscnf_study.labels import METRICS, loss_label, method_label, scm_label
from misscnf_study.published import SOURCE, beside, published
from misscnf_study.suites import SUITES
from misscnf_study.summary import summarise
from misscnf_study.table_formats import FORMATS, number, render
from misscnf_study.tables import compare_table, make_table

from misscnf import InputError


def setting(method, seed=0, **options):
    chosen = {"scm": "chain_lin", "mechanism": "mar", "rate": 0.6, **options}
    return one(method=method, seed=seed, **chosen)


@pytest.fixture
def rows(tmp_path):
    """One setting: MICE best, MissCNF second, the mean last, listwise once impossible."""
    return rows_of(
        tmp_path,
        [
            (setting("misscnf", 0), 0.02),
            (setting("misscnf", 1), 0.04),
            (setting("mice", 0), 0.01),
            (setting("mice", 1), 0.02),
            (setting("mean", 0), 40.0),
            (setting("mean", 1), 42.0),
            (setting("listwise", 0), "impossible"),
            (setting("listwise", 1), 0.5),
            (setting("full", 0), 0.004),
            (setting("full", 1), 0.006),
        ],
    )


def test_a_summary_averages_over_seeds(rows):
    summary = summarise(rows, "kl").set_index("label")
    assert list(summary.index) == ["Full data", "Listwise deletion", "Mean", "MICE", "MissCNF"]
    assert summary.loc["MissCNF", "mean"] == pytest.approx(0.03)
    assert summary.loc["MissCNF", "std"] == pytest.approx(0.01 * math.sqrt(2.0))  # of a sample
    assert list(summary["mark"]) == ["", "", "", "best", "second"]
    assert summary.loc["Listwise deletion", ["count", "impossible"]].tolist() == [1, 1]


def test_markdown_says_it_as_the_paper_does(rows):
    lines = render(make_table(rows, "kl"), "md").splitlines()
    assert lines[:8] == [
        "| Method | Chain LIN |",
        "| --- | ---: |",
        "| *Full data (reference)* | *0.0050 ± 0.0014* |",
        "| *MAR, 60%* |  |",
        "| Listwise deletion | 0.500 † |",
        "| Mean | 41.000 ± 1.414 |",
        "| MICE | **0.015** ± 0.007 |",
        "| MissCNF | <ins>0.030</ins> ± 0.014 |",
    ]
    assert lines[-1].startswith("Symmetric KL, mean ± std over up to 2 seeds.")
    assert lines[-1].endswith("† Some seeds gave no number.")


def test_latex_says_the_same(rows):
    text = render(make_table(rows, "kl"), "latex")
    assert r"Method & Chain$_{\text{LIN}}$ \\" in text
    assert r"\textit{Full data (reference)} & \textit{0.0050{\tiny$\pm$0.0014}} \\" in text
    assert r"\multicolumn{2}{l}{\textit{MAR, 60\%}} \\" in text
    assert r"MICE & \textbf{0.015}{\tiny$\pm$0.007} \\" in text
    assert r"MissCNF & \underline{0.030}{\tiny$\pm$0.014} \\" in text
    assert text.count("{") == text.count("}")


def test_csv_keeps_all_digits(rows):
    lines = render(make_table(rows, "kl"), "csv").splitlines()
    assert lines[0] == "Block,Method,Chain LIN mean,Chain LIN std,Chain LIN mark"
    assert '"MAR, 60%",MICE,0.015,0.00707107,best' in lines


def test_what_gave_no_number_says_why(tmp_path):
    rows = rows_of(
        tmp_path,
        [
            (setting("listwise"), "impossible"),
            (setting("mice"), "failed"),
            (setting("misscnf"), 0.03),
        ],
    )
    lines = render(make_table(rows, "kl"), "md").splitlines()
    assert "| Listwise deletion | impossible |" in lines
    assert "| MICE | failed |" in lines
    assert "| MissCNF | 0.030 |" in lines  # one seed has no spread, one line no rank


def test_variants_never_mix(tmp_path):
    quick = trials(
        scm=["chain_lin"], mechanism=["mar"], rate=[0.6], method=["misscnf"], seed=[0],
        preset=["paper"], rows=200, epochs=5,
    )[0]  # fmt: skip
    rows = rows_of(tmp_path, [(setting("misscnf"), 0.1), (quick, 0.2)])
    summary = summarise(rows, "kl")
    assert list(summary["label"]) == ["MissCNF (auto)", "MissCNF (paper, 200 rows, 5 epochs)"]
    assert list(summary["mean"]) == [0.1, 0.2]


def test_against_the_paper(rows):
    lines = render(compare_table(rows, "kl"), "md").splitlines()
    assert lines[0] == "| World | Method | Ours | Printed | Ratio |"
    # The paper's table of KL, MAR at 60 %, Chain LIN.
    assert "| Chain LIN | MissCNF | 0.030 ± 0.014 | 0.029 ± 0.017 | 1.03 |" in lines
    assert "| Chain LIN | MICE | 0.015 ± 0.007 | 0.006 ± 0.003 | 2.50 |" in lines
    assert "| Chain LIN | Mean | 41.000 ± 1.414 | 40.447 ± 7.807 | 1.01 |" in lines
    assert "| *Chain LIN* | *Full data* | *0.0050 ± 0.0014* | 0.005 ± 0.003 | 1.00 |" in lines
    assert SOURCE in lines[-1]


def test_variants_of_a_world_stand_beside_the_printed_one(tmp_path):
    code = setting("misscnf", scm="triangle_nlin_code")
    rows = rows_of(tmp_path, [(code, 0.026)], metric="kl_exact")
    (line,) = [
        x for x in render(compare_table(rows, "kl_exact"), "md").splitlines() if "code" in x
    ]
    assert line == "| Triangle NLIN (code) | MissCNF | 0.026 | 0.052 ± 0.032 | 0.50 |"


def test_what_the_paper_does_not_print_stays_empty(tmp_path):
    rows = rows_of(tmp_path, [(setting("knn"), 0.2)])
    assert "| Chain LIN | KNN | 0.200 | – | – |" in render(compare_table(rows, "kl"), "md")


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("form", FORMATS)
def test_every_suite_has_a_table(suite, form):
    rows = every_row(suite, seed=[0, 1])
    table = make_table(rows, "cf")
    shown = [cell for block in table.blocks for _, line in block.lines for cell in line]
    summary = summarise(rows, "cf")
    assert {round(cell.mean, 9) for cell in shown if not math.isnan(cell.mean)} == set(
        summary["mean"].round(9)
    )
    assert render(table, form)


def test_positivity_has_regimes_as_lines():
    lines = render(make_table(every_row("positivity", seed=[0]), "kl"), "md").splitlines()
    assert lines[0] == "| Regime | Full data | MICE | MissCNF |"
    assert [line.split(" |")[0] for line in lines[2:6]] == [
        "| *Chain LIN*",
        "| Full positivity",
        "| Family positivity",
        "| Family positivity violated",
    ]


def test_every_printed_number_is_there():
    total = sum(
        len(published(suite, metric))
        for suite in SUITES
        for metric in ("kl", "ate", "cf", "seconds")
    )
    assert total == 2316
    assert published("scaling", "kl").empty


def test_printed_numbers_use_our_words():
    for suite in SUITES.values():
        losses = {*suite.losses, ("complete", None)}
        table = published(suite.name, "kl")
        pairs = zip(table["mechanism"], table["rate"], strict=True)
        assert {(m, None if pd.isna(r) else r) for m, r in pairs} <= losses
        assert set(table["scm"]) <= set(suite.scms)


def test_printed_numbers_are_those_of_the_paper():
    table = published("positivity", "kl").set_index(["scm", "mechanism", "method"])
    assert table.loc[("fork_nlin", "two_patterns_violated", "misscnf"), "mean"].item() == 1.52
    draws = published("draws", "seconds").set_index(["scm", "draws"])
    assert draws.loc[("fork_nlin", 1024), "mean"].item() == 602.0


def test_a_number_of_draws_is_held_against_its_own():
    both = beside(summarise(every_row("draws", seed=[0]), "kl"), "draws", "kl")
    fork = both[both["scm"] == "fork_nlin"].set_index("draws")
    assert fork.loc[[32, 1024], "printed"].tolist() == [0.054, 0.034]


def test_numbers_have_the_digits_they_need():
    assert [number(x) for x in (324.7731, 13.6418, 0.0425, 0.00421, 0.00042, -0.0005)] == [
        "324.773", "13.642", "0.043", "0.0042", "0.00042", "-0.00050",
    ]  # fmt: skip


def test_labels_are_words():
    assert scm_label("collider_nlin_unit") == "Collider NLIN (unit)"
    assert scm_label("chain_d_16") == "Chain d = 16"
    assert scm_label("backdoor_nlin") == "Backdoor NLIN"
    assert loss_label("alternating", float("nan")) == "Every second node missing"
    assert method_label("sklearn:a.b:Filler") == "Filler"


def test_an_unknown_metric_and_no_rows_are_refused(rows):
    with pytest.raises(InputError, match=f"there is no 'auc'; there are {', '.join(METRICS)}"):
        summarise(rows, "auc")
    with pytest.raises(InputError, match="has no rows"):
        summarise(rows.iloc[:0], "kl")
