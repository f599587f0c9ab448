"""The studio as a stranger meets it: from the installed wheel, over NHEFS, to the code and back.

`make studio-walk` builds the wheel, installs it in a new environment and names its Python in WALK.
The walk takes minutes, since the code that the page gives is run in fresh processes, fits and all;
so `make test` leaves it out.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browsing import (
    PATIENCE,
    Running,
    click_arrow,
    draw_arrow,
    go,
    needs_chromium,
    until,
    verdict,
)

PYTHON = os.environ.get("WALK", "")
pytestmark = [
    pytest.mark.slow,
    needs_chromium,
    pytest.mark.skipif(not PYTHON, reason="make studio-walk installs the wheel for it"),
]
LONG = 600_000
"""Milliseconds: a fit by auto takes a minute, and longer where others use the machine."""
CONFOUNDERS = ["sex", "race", "age", "education", "smokeyrs", "smokeintensity"]
CONFOUNDERS += ["exercise", "active", "wt71"]
ARROWS = {("confounders", "qsmk"), ("confounders", "wt82_71"), ("qsmk", "wt82_71")}
NUMBERS = ("estimate", "lower", "upper")


@pytest.fixture(scope="module")
def outside():
    """How the wheel is run: without the sources of this folder."""
    return {name: of for name, of in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture
def page(browser, tmp_path, outside):
    """A studio without a table, and its page."""
    studio = Running(tmp_path / "project", python=PYTHON, cwd=tmp_path, env=outside)
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    tab.set_default_timeout(PATIENCE)
    complaints = []
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto(studio.address)
    yield tab, studio
    studio.end()
    tab.close()
    assert complaints == []


@pytest.fixture(scope="module")
def table(tmp_path_factory, outside):
    """NHEFS as a file, from the wheel itself."""
    path = tmp_path_factory.mktemp("walk") / "nhefs.csv"
    code = "import misscnf, sys; misscnf.load_nhefs().to_csv(sys.argv[1], index=False);"
    code += "print(misscnf.__file__)"
    done = run([PYTHON, "-c", code, str(path)], path.parent, outside)
    assert "site-packages" in done, f"{PYTHON} has no wheel installed, but {done}"
    return path


def run(command, folder, env):
    """Runs a command in a fresh process, and returns what it prints."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def drawn(tab):
    """The arrows as they stand on the page."""
    found = tab.eval_on_selector_all(
        ".edge", "all => all.map(one => [one.dataset.from, one.dataset.to])"
    )
    return {tuple(edge) for edge in found}


def draw_nhefs(tab):
    """Nine columns, a block of them, treatment and outcome, three arrows: all by mouse."""
    for name in CONFOUNDERS:
        tab.click(f"[title='add {name} to the graph']")
    tab.click("text=Fit in")
    tab.click(f"[data-node={CONFOUNDERS[0]}] text")
    for name in CONFOUNDERS[1:]:
        tab.click(f"[data-node={name}] text", modifiers=["Shift"])
    tab.fill("[aria-label='name of the block']", "confounders")
    tab.click("text=Make a block")
    tab.wait_for_selector("[data-block=confounders]")
    for name in ("qsmk", "wt82_71"):
        tab.click(f"[title='add {name} to the graph']")
    tab.click("text=Arrange")
    tab.click("text=Fit in")
    draw_arrow(tab, "confounders", "qsmk", "[data-block=confounders] text")
    draw_arrow(tab, "confounders", "wt82_71", "[data-block=confounders] text")
    draw_arrow(tab, "qsmk", "wt82_71")
    tab.click("[data-node=qsmk] text")
    tab.click(".selected >> text=Treatment")


def test_from_the_wheel_to_the_number_and_back(page, table, tmp_path, outside):
    tab, studio = page
    tab.set_input_files("input[type=file]", table)
    tab.wait_for_selector("h1:has-text('nhefs.csv')")
    assert "1,629 rows, 11 columns" in tab.inner_text("main")
    tab.wait_for_selector(".why:has-text('numbers with fractions')")

    go(tab, "Graph")
    draw_nhefs(tab)
    verdict(tab, "Nothing in these rows speaks against it")
    assert drawn(tab) == ARROWS
    until(lambda: studio.kept["drawing"]["effect"] == ["qsmk", "wt82_71"])
    by_mouse = studio.kept["drawing"]

    # Without this arrow, who quits has nothing to do with age or weight: the rows deny it.
    click_arrow(tab, "[data-from=confounders][data-to=qsmk]")
    tab.keyboard.press("Delete")
    verdict(tab, "The rows speak against this graph")
    tab.keyboard.press("Control+z")
    verdict(tab, "Nothing in these rows speaks against it")
    tab.keyboard.press("Control+Shift+z")
    verdict(tab, "The rows speak against this graph")
    tab.keyboard.press("Control+z")
    verdict(tab, "Nothing in these rows speaks against it")

    # The same graph as another tool would write it draws the same.
    tab.click("text=Import, export")
    tab.fill("dialog textarea", "x -> y")
    tab.click("dialog >> text=Draw this")
    tab.wait_for_selector("[data-node=y]", state="attached")
    assert drawn(tab) == {("x", "y")}
    imported = f"confounders = {{{', '.join(CONFOUNDERS)}}}\nconfounders -> qsmk, wt82_71\n"
    tab.click("text=Import, export")
    tab.fill("dialog textarea", imported + "qsmk -> wt82_71")
    tab.click("dialog >> text=Draw this")
    tab.wait_for_selector("[data-block=confounders]", state="attached")
    tab.click("[data-node=qsmk] text")
    tab.click(".selected >> text=Treatment")
    verdict(tab, "Nothing in these rows speaks against it")
    assert drawn(tab) == ARROWS
    until(lambda: studio.kept["drawing"]["effect"] == by_mouse["effect"])
    assert studio.kept["drawing"]["blocks"] == by_mouse["blocks"]

    go(tab, "Fit")
    tab.check("label:has-text('auto') input")
    tab.click("main button.primary:has-text('Fit')")
    tab.wait_for_selector("progress[max]")
    until((studio.folder / "checkpoint").exists, LONG / 1000)
    assert tab.inner_text(".progress strong")
    tab.click("text=Cancel")
    tab.wait_for_selector("text=goes on from where it was")
    assert len(studio.workers) == 1  # the one that keeps the table
    tab.reload()
    tab.click("text=Go on with the fit")
    tab.wait_for_selector("text=The fitted model", timeout=LONG)

    go(tab, "Ask")
    tab.click("form button:has-text('Ask')")
    tab.wait_for_selector("[data-answer='1'] .interval", timeout=LONG)
    (answer,) = studio.kept["answers"]
    found = answer["answer"]
    assert found["lower"] < found["estimate"] < found["upper"]
    tab.reload()
    tab.wait_for_selector("[data-answer='1'] .interval")
    go(tab, "Graph")
    tab.wait_for_selector("[data-block=confounders]", state="attached")
    assert drawn(tab) == ARROWS

    model = studio.folder / studio.kept["model"]["folder"]
    words = ["effect", str(model), "--on", "wt82_71", "--do", "qsmk=1", "--versus", "qsmk=0"]
    words += ["--interval", "0.95", "--data", str(table), "--json", "--quiet"]
    told = json.loads(run([PYTHON, "-m", "misscnf", *words], tmp_path, outside))
    assert [found[name] for name in NUMBERS] == [told[name] for name in NUMBERS]

    go(tab, "Report")
    tab.click("text=Write the report")
    with tab.expect_popup(timeout=LONG) as opened:
        tab.click("a:has-text('Open the report')", timeout=LONG)
    opened.value.wait_for_selector("h1")
    assert f"{found['estimate']:.2f}" in opened.value.inner_text("body")
    opened.value.close()

    go(tab, "Code")
    python = tab.inner_text("pre[data-code=Python]")
    shell = tab.inner_text("pre[data-code='Command line']")
    assert studio.stop() == []

    # Both fit anew, in one go where the page's fit was cancelled in between.
    assert found["told"] in run([PYTHON, "-c", python], tmp_path, outside)
    for name in ("graph.dot", "kinds.json"):
        (tmp_path / name).write_bytes((studio.folder / name).read_bytes())
    path = f"{Path(PYTHON).parent}:{outside['PATH']}"
    printed = run(["sh", "-ec", shell], tmp_path, {**outside, "PATH": path})
    figures = re.findall(r"-?\d+\.\d+", found["told"])
    assert figures
    assert set(figures) <= set(re.findall(r"-?\d+\.\d+", printed))
    assert (tmp_path / "report.html").stat().st_size > 10_000

    again = Running(studio.folder, python=PYTHON, cwd=tmp_path, env=outside)
    try:
        tab.goto(again.address)
        go(tab, "Ask")
        tab.wait_for_selector("[data-answer='1'] .interval")
        go(tab, "Report")
        tab.wait_for_selector("text=Open the report")
        assert again.kept["answers"] == [answer]
        assert again.stop() == []
    finally:
        again.end()


def import_text(tab, text, last):
    tab.click("text=Import, export")
    tab.fill("dialog textarea", text)
    tab.click("dialog >> text=Draw this")
    tab.wait_for_selector(last, state="attached")


def fit_linear(tab):
    go(tab, "Fit")
    tab.check("label:has-text('linear') input")
    tab.click("main button.primary:has-text('Fit')")
    tab.wait_for_selector("text=The fitted model", timeout=LONG)
    go(tab, "Ask")


def ask(tab, number):
    tab.uncheck("label:has-text('with an interval') input")
    tab.click("form button.primary")
    tab.wait_for_selector(f"[data-answer='{number}'], .notice.careful", timeout=LONG)
    assert tab.locator(f"[data-answer='{number}']").count(), tab.inner_text(".notice.careful")


def again_by_python(tab, studio, folder, outside):
    """Runs the exported Python in a fresh process, and finds every answer of the page in it."""
    go(tab, "Code")
    printed = run([PYTHON, "-c", tab.inner_text("pre[data-code=Python]")], folder, outside)
    for one in studio.kept["answers"]:
        if "told" in one["answer"]:
            assert one["answer"]["told"] in printed
    return printed


def test_tiers_auxiliary_columns_and_every_other_question(page, table, tmp_path, outside):
    tab, studio = page
    tab.set_input_files("input[type=file]", table)
    go(tab, "Graph")
    tab.click("text=In tiers")
    for name, tier in (("age", 1), ("sex", 1), ("qsmk", 2), ("wt82_71", 3)):
        tab.fill(f".tiers label:has-text('{name}') input", str(tier))
    tab.click("text=Draw these tiers")
    tab.wait_for_selector("[data-from=qsmk][data-to=wt82_71]", state="attached")
    assert len(drawn(tab)) == 3
    tab.click("summary:has-text('Auxiliary')")
    tab.check(".auxiliary label:has-text('wt71') input")
    tab.click("[data-node=qsmk] text")
    tab.click(".selected >> text=Treatment")
    tab.wait_for_selector("[data-node=wt82_71] >> text=outcome")
    fit_linear(tab)
    assert studio.kept["model"]["drawing"]["auxiliary"] == ["wt71"]

    tab.select_option(
        "[aria-label='Do qsmk: a rule']", label="by chance, for 3 of 10: bernoulli(0.3)"
    )
    ask(tab, 1)
    tab.click("text=If the loss is worse")
    tab.fill("input[aria-label='Do qsmk']", "1")
    ask(tab, 2)
    tab.click("text=Dose and response")
    ask(tab, 3)
    tab.click("text=One row")
    tab.click("form button.primary")
    tab.wait_for_selector("[data-answer='4'] th:has-text('wt82_71')")
    calls = [one["call"]["method"] for one in studio.kept["answers"]]
    assert calls == ["effect", "sensitivity", "curve", "counterfactual"]
    assert studio.kept["answers"][0]["call"]["arguments"]["do"] == {"qsmk": "bernoulli(0.3)"}
    printed = again_by_python(tab, studio, tmp_path, outside)
    (point, *_) = studio.kept["answers"][2]["answer"]["curve"]
    assert f"{point['mean']:.3f}" in printed

    go(tab, "Project")  # another project, and back
    tab.fill("[placeholder='its name']", "second")
    tab.click("text=Begin it")
    tab.wait_for_selector("text=Drop a table here")
    go(tab, "Project")
    tab.click("text=Open project")
    tab.wait_for_selector("h1:has-text('nhefs.csv')")
    go(tab, "Ask")
    tab.wait_for_selector("[data-answer='4']")
    assert studio.stop() == []


def test_a_table_over_time(page, tmp_path, outside):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"who": np.repeat(range(200), 3), "week": [0, 1, 2] * 200})
    frame["L"] = rng.normal(size=600)
    frame["A"] = (rng.normal(size=600) + frame["L"] > 0).astype(int)
    frame["Y"] = (frame["A"] + frame["L"] + rng.normal(size=600)).mask(rng.random(600) < 0.1)
    frame["ill"] = (rng.random(600) < 0.2).astype(int)
    frame = frame[frame.groupby("who")["ill"].cumsum() - frame["ill"] == 0]
    frame.to_csv(tmp_path / "long.csv", index=False)
    tab, studio = page
    tab.set_input_files("input[type=file]", tmp_path / "long.csv")
    tab.click("text=Is it a row a person and visit?")
    tab.select_option("label:has-text('who') select", "who")
    tab.select_option("label:has-text('when') select", "week")
    tab.select_option("[aria-label='kind of ill']", "event")
    go(tab, "Graph")
    for name in ("L[t-1]", "L[t]", "A[t]"):
        tab.click(f"[title='add {name} to the graph']")
    text = "L[t-1] -> L[t]; L[t-1], L[t] -> A[t]; A[t], L[t] -> Y[t]; A[t] -> ill[t]"
    import_text(tab, text, "[data-from='A[t]'][data-to='ill[t]']")
    tab.click("text=Fit in")
    tab.click("[data-node='A[t]'] text")
    tab.click(".selected >> text=Treatment")
    tab.wait_for_selector("text=at all visits on Y is identified by the g-formula")
    fit_linear(tab)
    ask(tab, 1)
    tab.click("text=Risk over time")
    ask(tab, 2)
    calls = [one["call"]["method"] for one in studio.kept["answers"]]
    assert calls == ["effect", "risk"]
    assert "by week 2" in tab.inner_text("[data-answer='2']")
    again_by_python(tab, studio, tmp_path, outside)
    assert studio.stop() == []
