"""What a report tells: the hole that matters, one conclusion about loss, each thing once."""

import logging

import numpy as np
import pandas as pd
import pytest

from misscnf import MissCNF, check, write_report

HOLE = float("nan")


@pytest.fixture(scope="module")
def monotone():
    """A, B and C in turn; C is shown to 2 in 100 with B = 1, and to 4 in 5 of the others."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 2000)
    b = rng.random(2000) < np.where(a == 1, 0.6, 0.25)
    c = rng.random(2000) < 0.3 + 0.3 * b
    table = pd.DataFrame({"A": a, "B": b, "C": c}).astype(float)
    table.loc[rng.random(2000) < np.where(b, 0.98, 0.2), "C"] = HOLE
    return table


GRAPH = "A -> B; A -> C; B -> C"


def test_the_hole_that_matters_is_named_with_its_count(monotone):
    report = check(monotone, GRAPH, effect=("B", "C"))
    ones = monotone[monotone["B"] == 1]
    counted = f"in only {ones['C'].notna().sum()} of {len(ones)} rows where B is 1"
    (sentence,) = report.thin
    assert counted in sentence
    assert counted in str(report)
    assert report.to_dict()["thin"] == [sentence]
    assert report.regions["thin"].tolist() == [True]


def test_holes_at_random_leave_no_thin_place():
    # Twenty tables; chance alone makes a thin place in one family of 200 at most.
    thin = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame(rng.normal(size=(1000, 4)), columns=list("abcd"))
        table = table.mask(rng.random(table.shape) < rng.uniform(0.1, 0.6))
        thin += bool(check(table, "a -> b; b -> c; c -> d").thin)
    assert thin <= 2


def test_command_and_page_draw_one_conclusion_about_loss(monotone):
    # The holes of c go with the size of b, whose mean they leave: Little's test sees nothing.
    rng = np.random.default_rng(1)
    b, c = rng.normal(size=(2, 800))
    lost = rng.random(800) < np.where(np.abs(b) > 1, 0.6, 0.2)
    table = pd.DataFrame({"b": [*b, *-b], "c": [*np.where(lost, HOLE, c)] * 2})
    report = check(table, "b -> c")
    assert report.little.p_value > 0.05
    assert report.completely_at_random is False
    assert "not lost completely at random" in str(report)
    assert check(monotone[["A", "B"]], "A -> B").completely_at_random is None


@pytest.fixture(scope="module")
def page(monotone, tmp_path_factory):
    """A model of the monotone table, its page, and what was said on the way."""
    table, said = monotone.assign(note=np.arange(len(monotone)) % 7), []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger = logging.getLogger("misscnf")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        model = MissCNF(GRAPH, "linear", progress=False).fit(table)
        told = len(said)
        target = tmp_path_factory.mktemp("page") / "report.html"
        write_report(model, table, target, effect=("B", "C"))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    html = target.read_text(encoding="utf-8").replace("\u00a0", " ")
    return model, table, html, said[told:]


def test_loss_that_goes_with_a_column_outside_the_graph_makes_mar_doubtful(monotone):
    told = str(check(monotone, "A -> C"))
    assert "columns outside the graph, which a fit does not see: B." in told
    assert "outside the graph" not in str(check(monotone, GRAPH))


def test_the_page_agrees_with_the_command(page, monotone):
    *_, html, _ = page
    report = check(monotone, GRAPH, effect=("B", "C"))
    assert report.thin[0] in html
    assert "So values are not lost completely at random" in html
    assert "There the answer hangs on these few rows." in html


def test_a_note_is_said_once(page):
    *_, said = page
    assert sum("not in the graph are ignored" in line for line in said) == 1
