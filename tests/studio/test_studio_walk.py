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

import pytest
from browsing import (
    Running,
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


def test_from_the_wheel_to_the_number_and_back(browser, table, tmp_path, outside):
    studio = Running(tmp_path / "project", python=PYTHON, cwd=tmp_path, env=outside)
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    tab.set_default_timeout(LONG)
    complaints = []
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        walk(tab, studio, table, tmp_path, outside)
    finally:
        studio.end()
        tab.close()
    assert complaints == []


def walk(tab, studio, table, tmp_path, outside):
    tab.goto(studio.address)
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
    tab.click("[data-from=confounders][data-to=qsmk] .reach", force=True)
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
    tab.wait_for_selector("text=The fitted model")

    go(tab, "Ask")
    tab.click("form button:has-text('Ask')")
    tab.wait_for_selector("[data-answer='1'] .interval")
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
    with tab.expect_popup() as opened:
        tab.click("a:has-text('Open the report')")
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
