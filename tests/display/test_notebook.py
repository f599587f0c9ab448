"""What notebooks show: small, escaped, well-formed HTML, with the numbers that matter."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest
import sklearn

import misscnf
from misscnf import MissCNF
from misscnf.display.notebook import card, number_text
from misscnf.display.style import STYLE

ODD = "y<script>&"
"""A column that would break a page if it were not escaped."""
GRAPH = [("t", ODD)]


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    t = rng.normal(size=2000)
    frame = pd.DataFrame({"t": t, ODD: 2 * t + rng.normal(size=2000)})
    frame.loc[frame["t"] > 1, ODD] = np.nan
    return frame


@pytest.fixture(scope="module")
def model(df):
    return MissCNF(GRAPH, preset="linear", progress=False).fit(df)


def text_of(html):
    """Returns the words of a card, and fails where the HTML is not well formed."""
    assert "<script" not in html
    assert len(html) < 20_000
    root = ElementTree.fromstring(html.replace("<br>", "<br/>"))
    assert root.attrib["style"]
    return " ".join(root.itertext())


def test_a_fitted_model_shows_what_it_is(model, df):
    words = text_of(model._repr_html_())
    holes = 100 * df.isna().to_numpy().mean()
    for part in ("MissCNF", f"t → {ODD}", f"2000, {holes:.1f} % of", "linear", "continuous"):
        assert part in words
    assert model._repr_mimebundle_()["text/html"] == model._repr_html_()


@pytest.mark.slow
def test_a_trained_model_shows_its_gain(df):
    settings = {"epochs": 1}
    trained = MissCNF(GRAPH, progress=False, settings=settings).fit(df)
    words = text_of(trained._repr_html_())
    gain = trained.comparison_["elpd_difference"]
    assert f"{gain:.4f} ±" in words
    assert "nats a row" in words


def test_a_model_that_is_not_fitted_is_scikit_learns_diagram():
    html = MissCNF(GRAPH)._repr_html_()
    assert "sk-container" in html
    assert "sk-container" in MissCNF(GRAPH)._repr_mimebundle_()["text/html"]


def test_text_is_shown_to_those_who_ask_for_text(model):
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
        assert not hasattr(model, "_repr_html_")


def test_a_loaded_model_has_a_card_too(model, tmp_path):
    model.save(tmp_path / "model")
    assert "t →" in text_of(MissCNF.load(tmp_path / "model")._repr_html_())


def test_the_report_before_a_fit(df):
    report = misscnf.check(df, GRAPH)
    html = report._repr_html_()
    words = text_of(html)
    for part in (f"not guaranteed for {ODD}", "uncovered in part", "above 1", "all families"):
        assert part in words
    assert STYLE.orange in html
    whole = misscnf.check(df.fillna(0.5), GRAPH, ("t", ODD))
    assert STYLE.green in whole._repr_html_()
    assert f"the effect t → {ODD}" in text_of(whole._repr_html_())


def test_the_report_asks_its_questions():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.integers(0, 2, 400), "weight": rng.normal(size=400)})
    frame["births"] = np.where(frame["sex"] == 1, rng.normal(size=400), np.nan)
    report = misscnf.check(frame, "sex -> births; weight")
    assert report.structural_holes[0].question in text_of(report._repr_html_())


def test_the_report_after_a_fit(model, df):
    report = model.check(df, do={"t": 5.0})
    words = text_of(report._repr_html_())
    for part in ("after the fit, under do(t = 5)", "share outside", report.warnings[0]):
        assert part in words


def test_the_card_of_an_effect(model):
    effect = model.effect(ODD, do={"t": 1.0}, versus={"t": 0.0}, draws=100)
    words = text_of(effect._repr_html_())
    for part in ("effect on y<", "mean difference", number_text(effect.estimate)):
        assert part in words
    assert "Monte-Carlo" not in words  # both arms share their noise: what is left is rounding


def test_the_card_of_a_risk_has_its_ratios_and_levels():
    rng = np.random.default_rng(0)
    t = rng.normal(size=400)
    frame = pd.DataFrame({"t": t, "y": np.where(t + rng.normal(size=400) > 0, "<ill>", "well")})
    model = MissCNF("t -> y", preset="linear", progress=False).fit(frame)
    effect = model.effect("y", do={"t": 1.0}, versus={"t": 0.0}, event="<ill>", draws=2000)
    words = text_of(effect._repr_html_())
    for part in ("risk difference of '<ill>'", "risk ratio", number_text(effect.odds_ratio)):
        assert part in words
    assert "probability of each level" in words


def test_an_interval_is_shown_with_its_level():
    given = {"interval": (1.5, 2.5), "level": 0.9, "notes": ("beyond <what> was seen",)}
    effect = misscnf.Effect("y", {"t": 1}, {"t": 0}, 2.0, 0.01, 3.0, 1.0, 100, **given)
    words = text_of(effect._repr_html_())
    assert "2.00 (90 % interval 1.50 to 2.50) (Monte-Carlo error 0.01)" in words
    assert "beyond <what> was seen" in words


def test_numbers_are_short():
    assert [number_text(x) for x in (1.23456, 12, np.int64(3), True, None, np.nan, np.inf)] == [
        "1.235",
        "12",
        "3",
        "True",
        "–",
        "–",
        "∞",
    ]


def test_long_tables_are_cut_and_counted():
    words = text_of(card("long", tables={"rows": pd.DataFrame({"n": range(50)})}))
    assert "… and 30 more" in words
    assert " 19 " in f" {words} ".replace("…", " ")
    assert "20" not in words
