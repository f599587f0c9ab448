"""The page of a table over time, and its check: the natural course beside the table."""

import re

import numpy as np
import pandas as pd
import pytest

from misscnf import MissCNF, write_report
from misscnf.errors import InputError
from misscnf.report.natural_course import natural_courses

GRAPH = "sex, L[t-1], A[t-1] -> L[t]; L[t] -> A[t]; L[t], A[t] -> Y[t]"


def world(people=300, seed=0, drift=0.0):
    rng = np.random.default_rng(seed)
    alive, parts, level = np.ones(people, dtype=bool), [], rng.normal(size=people)
    sex, dose = rng.integers(0, 2, people), np.zeros(people)
    for visit in range(3):
        level = 0.5 * level - 0.5 * dose + 0.3 * sex + drift * visit + rng.normal(size=people)
        dose = (rng.random(people) < 1 / (1 + np.exp(-level))).astype(int)
        event = (rng.random(people) < 1 / (1 + np.exp(2 - level + dose))).astype(int)
        row = {"id": np.arange(people), "week": visit, "sex": sex, "L": level, "A": dose}
        parts.append(pd.DataFrame({**row, "Y": event})[alive])
        alive = alive & (event == 0) & (rng.random(people) < 0.95)
    table = pd.concat(parts)
    table["L"] = table["L"].mask(rng.random(len(table)) < 0.2)
    return table


def fitted(table, graph=GRAPH, **more):
    given = {"id": "id", "time": "week", "kinds": {"Y": "event"}, "progress": False, **more}
    return MissCNF(graph, "linear", **given).fit(table)


@pytest.fixture(scope="module")
def table():
    return world()


@pytest.fixture(scope="module")
def model(table):
    return fitted(table)


def words_of(page):
    text = re.sub(r"<style>.*?</style>|<[^>]*>", " ", page.read_text(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", text.replace("&#34;", '"').replace("&lt;", "<"))


def test_the_page_says_what_python_says(model, table, tmp_path):
    page = tmp_path / "page.html"
    few = {"effects.draws": 2000}
    write_report(model, table, page, effect=("A", "Y"), replicates=10, settings=few)
    found = words_of(page)
    last = model.risk("Y", {"A": 1}, {"A": 0}, draws=2000).table.iloc[-1]
    assert f"{100 * abs(last['difference']):.1f}" in found
    assert "What does A do to Y over time?" in found
    assert "With A = 1 at every visit, the risk of Y by week 2 would be" in found
    assert "Nothing here speaks against the model" in found
    assert "Y[0]" not in found  # the graph is that of one visit
    assert "http" not in page.read_text().replace("http://www.w3.org", "")


def test_means_and_rules_have_pages_too(model, table, tmp_path):
    page = tmp_path / "page.html"
    asked = {"do": {"A": "L[t] < 0"}, "interval": None, "settings": {"effects.draws": 2000}}
    write_report(model, table, page, effect=("A", "L"), **asked)
    found = words_of(page)
    assert "With A by the rule L[t] < 0, the mean of L at week 2 would be" in found
    assert "with the natural course" in found
    assert "L is what it would be if nobody had had Y before" in found
    again = tmp_path / "again.html"
    write_report(model, table, again, effect=("A", "L"), **asked)
    assert again.read_bytes() == page.read_bytes()


def test_a_page_without_a_question(model, table, tmp_path):
    page = tmp_path / "page.html"
    write_report(model, table, page, settings={"effects.draws": 2000})
    assert "No question was asked" in words_of(page)


def test_the_natural_course_finds_a_law_that_does_not_fit(model, table):
    """One alarm in 100 at most where the model is right; a law without time misses a trend."""
    good = natural_courses(model, model._read(table), 5000, 0.01, 0)
    assert [course.column for course in good] == ["L", "A"]
    assert all(course.ok for course in good)
    shown = table.groupby("week")["L"].mean().to_numpy()
    assert good[0].table["shown"].to_numpy() == pytest.approx(shown)
    grows = world(drift=0.6)
    line = fitted(grows, "sex -> L[t]; L[t] -> A[t]; L[t], A[t] -> Y[t]")
    bad = natural_courses(line, line._read(grows), 5000, 0.01, 0)
    assert not bad[0].ok  # one law for all visits, and L grows from one to the next


def test_the_follow_up_is_counted(model, table, tmp_path):
    page = tmp_path / "page.html"
    asked = {"interval": None, "settings": {"effects.draws": 2000}}
    write_report(model, table, page, effect=("A", "Y"), **asked)
    taken = table.pivot(index="id", columns="week", values="A")
    both = int((taken == 1).all(axis=1).sum())
    assert f"{both} people with A = 1 at every visit" in words_of(page)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"effect": ("A", "Z")}, "no column 'Z'"),
        ({"effect": ("Y", "L")}, "is an event, and no treatment"),
        ({"effect": ("A", "sex")}, "known once a person"),
        ({"effect": ("A", "Y"), "groups": ["sex"]}, "groups= is not there yet"),
        ({"effect": ("A", "Y"), "versus": {"A": 1}}, "name both arms"),
    ],
)
def test_what_cannot_be_shown_is_said(model, table, tmp_path, asked, said):
    with pytest.raises(InputError, match=said):
        write_report(model, table, tmp_path / "page.html", **asked)
    assert not (tmp_path / "page.html").exists()


def test_a_page_says_which_losses_are_modelled_and_how_to_do_it_again(tmp_path):
    rng, page = np.random.default_rng(0), tmp_path / "page.html"
    rows = [(i, week) for i in range(150) for week in range(2)]
    table = pd.DataFrame(rows, columns=["id", "week"]).assign(d=rng.normal(size=300))
    table["y"] = table["d"] + rng.normal(size=300)
    table["y"] = table["y"].mask(rng.random(300) < 1 / (1 + np.exp(1 - table["d"])))
    model = fitted(table, "d[t] -> y[t]; d[t] -> missing(y)[t]", kinds=None)
    asked = {"do": {"d": 1}, "versus": {"d": 0}, "interval": None}
    few = {"effects.draws": 500}
    write_report(model, table, page, effect=("d", "y"), settings=few, **asked)
    found = words_of(page)
    assert "but those of y, which follow their arrows" in found
    assert "Those of y were modelled instead" in found
    assert "whether y is lost" in found
    assert "The mean of y at week 1 with d = 1" in found
    assert "kinds = {'d': 'continuous', 'y': 'continuous'}" in found.replace("&#39;", "'")
    asked = {"strength": [0.0, 1.0], "interval": None, "data": table}
    with pytest.raises(InputError, match=r"draw it, as in L\[t\] -> missing\(L\)\[t\]"):
        model.sensitivity("y", {"d": 1}, {"d": 0}, **asked)
