"""The page in a real browser, with its server and its workers as they are started by a person."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browsing import PATIENCE, Running, click_arrow, draw_arrow, go, needs_chromium, verdict

pytestmark = [pytest.mark.slow, needs_chromium]


def small_table():
    """A table of four columns in which z and y are never seen together."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 240))
    t = (x + rng.normal(size=240) > 0).astype(int)
    y = 2 * t + x + rng.normal(size=240)
    frame = pd.DataFrame({"x": x, "t": t, "z": z, "y": y}).round(3)
    odd = np.arange(240) % 2 == 1
    frame.loc[odd, "z"] = np.nan
    frame.loc[~odd & (x > -1), "y"] = np.nan
    frame.loc[~odd, "y"] = np.nan
    return frame


@pytest.fixture
def studio(tmp_path):
    small_table().to_csv(tmp_path / "small.csv", index=False)
    running = Running(tmp_path / "project", str(tmp_path / "small.csv"))
    yield running
    running.end()


@pytest.fixture
def tab(browser, studio):
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.complaints, page.fetched = [], []
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda asked: page.fetched.append(asked.url))
    page.set_default_timeout(PATIENCE)
    page.goto(studio.address)
    page.wait_for_selector("table.columns")
    yield page
    page.close()
    home = studio.address.partition("/?")[0]
    assert page.complaints == []
    assert [url for url in page.fetched if not url.startswith((home, "data:"))] == []


def draw_by_mouse(tab):
    go(tab, "Graph")
    for name in ("x", "t", "z", "y"):
        tab.click(f".palette li button:has-text('+ {name}')")
    tab.click("text=Fit in")
    for cause, effect in (("x", "t"), ("x", "y"), ("t", "y"), ("z", "y")):
        draw_arrow(tab, cause, effect)


def test_from_the_table_to_the_code(tab, studio, tmp_path):
    from typer.testing import CliRunner

    from misscnf.cli.app import app

    draw_by_mouse(tab)
    verdict(tab, "Not guaranteed for y")
    click_arrow(tab, "[data-from=z]")
    tab.keyboard.press("Delete")
    verdict(tab, "Nothing in these rows speaks against it")
    tab.keyboard.press("Control+z")
    verdict(tab, "Not guaranteed for y")
    tab.keyboard.press("Control+Shift+z")
    verdict(tab, "Nothing in these rows speaks against it")

    tab.click("text=Import, export")  # the same graph as text, with a hidden cause
    tab.fill("dialog textarea", "x -> t; x -> y; t -> y; u [latent]; u -> t; u -> y")
    tab.click("text=Draw this")
    tab.click("[data-node=t] text")
    tab.click(".selected >> text=Treatment")
    tab.wait_for_selector("text=outcome")
    verdict(tab, "")
    tab.wait_for_selector(".check >> text=/identified|shape/")
    tab.keyboard.press("Control+z")
    tab.click("text=Import, export")
    tab.fill("dialog textarea", "x -> t; x -> y; t -> y")
    tab.click("text=Draw this")
    tab.click("[data-node=t] text")
    tab.click(".selected >> text=Treatment")
    tab.wait_for_selector("text=outcome")

    go(tab, "Fit")
    tab.check("label:has-text('linear') input")
    tab.click("main button.primary:has-text('Fit')")
    tab.wait_for_selector("text=The fitted model")
    go(tab, "Ask")
    tab.click("form button:has-text('Ask')")
    tab.wait_for_selector("[data-answer='1'] .interval")
    tab.reload()
    tab.wait_for_selector("[data-answer='1'] .interval")
    go(tab, "Graph")
    assert tab.locator(".edge").count() == 3

    (answer,) = studio.kept["answers"]
    model = studio.folder / studio.kept["model"]["folder"]
    words = ["effect", str(model), "--on", "y", "--do", "t=1", "--versus", "t=0", "--json"]
    words += ["--interval", "0.95", "--quiet", "--data", str(tmp_path / "small.csv")]
    done = CliRunner().invoke(app, words)
    told = json.loads(done.stdout)
    ends = [answer["answer"][name] for name in ("estimate", "lower", "upper")]
    assert ends == [told[name] for name in ("estimate", "lower", "upper")]

    go(tab, "Code")
    code = tab.inner_text("pre[data-code=Python]")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer["answer"]["told"] in run.stdout, run.stderr

    go(tab, "Report")
    tab.click("text=Write the report")
    with tab.expect_popup() as opened:
        tab.click("a:has-text('Open the report')")
    opened.value.wait_for_selector("h1")
    assert opened.value.locator(".verdicts li").count() > 3
    opened.value.close()
    assert studio.stop() == []


def test_a_fit_stops_goes_on_and_may_die(tab, studio, browser):
    go(tab, "Graph")
    tab.click("text=Import, export")
    tab.fill("dialog textarea", "x -> y; x -> z")
    tab.click("text=Draw this")
    verdict(tab, "Nothing in these rows speaks against it")
    go(tab, "Fit")
    tab.check("label:has-text('paper') input")  # whose epochs are slow enough to be stopped
    tab.click("main button.primary:has-text('Fit')")
    tab.wait_for_selector("progress[max]")
    working = studio.workers
    assert len(working) == 2
    other = browser.new_page()  # a second page comes and goes, and nothing of the fit with it
    other.goto(f"{studio.address}#fit")
    other.wait_for_selector("progress[max]")
    other.close()
    deadline = time.monotonic() + 60
    while not (studio.folder / "checkpoint").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    before = tab.evaluate("document.querySelector('progress').value")
    tab.click("text=Cancel")
    tab.wait_for_selector("text=goes on from where it was")
    assert len(studio.workers) == 1
    assert studio.kept["interrupted"]

    tab.click("text=Go on with the fit")
    tab.wait_for_selector("progress[max]")
    assert tab.evaluate("document.querySelector('progress').value") > before / 2
    (worker,) = set(studio.workers) - set(working)
    os.kill(worker, signal.SIGKILL)
    tab.wait_for_selector("text=it ended before it was done")
    tab.check("label:has-text('linear') input")
    tab.click("main button.primary:has-text('fit')")
    tab.wait_for_selector("text=The fitted model")
    assert studio.kept["interrupted"] is False

    workers = studio.workers
    assert len(workers) == 2
    studio.process.kill()  # not even Ctrl-C: the workers must see it by themselves
    studio.process.wait()
    tab.wait_for_selector("text=does not answer")
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    again = Running(studio.folder)
    assert len(again.kept["model"]["forms"]) == 3
    late = browser.new_page()
    late.set_default_timeout(PATIENCE)
    late.goto(again.address)
    go(late, "Fit")
    late.check("label:has-text('paper') input")
    late.click("main button.primary:has-text('Fit')")
    late.wait_for_selector("progress[max]")
    assert len(again.workers) == 2
    assert again.stop() == []  # Ctrl-C in the middle of a fit
    late.wait_for_selector("text=does not answer")
    late.close()
    assert len(again.kept["model"]["forms"]) == 3
    assert not [*studio.folder.rglob("*.part")]


FRAMES = """async (moves) => {
  const times = [];
  let going = true;
  const tick = now => { times.push(now); if (going) requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
  const node = document.querySelector('[data-node=v50] rect');
  const box = node.getBoundingClientRect();
  const ground = document.querySelector('.ground');
  const send = (kind, x, y, on) => on.dispatchEvent(new PointerEvent(kind,
    {bubbles: true, clientX: x, clientY: y, button: 0, pointerId: 1}));
  ground.setPointerCapture = () => {};
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  send('pointerdown', x, y, node);
  for (let i = 0; i < moves; i++) {
    send('pointermove', x + 80 * Math.sin(i / 9), y + 50 * Math.cos(i / 9), ground);
    await new Promise(requestAnimationFrame);
  }
  send('pointerup', x, y, ground);
  going = false;
  return (times.length - 1) * 1000 / (times.at(-1) - times[0]);
}"""


def test_it_looks_as_it_should_and_keeps_up(tab, studio):
    """Legible, nothing sticks out, and a hundred nodes follow the hand."""
    from contrast import CONTRAST

    edges = "; ".join(f"v{i} -> v{j}" for i in range(100) for j in (i + 1, i + 7) if j < 100)
    go(tab, "Graph")
    tab.click("text=Import, export")
    tab.fill("dialog textarea", edges)
    tab.click("text=Draw this")
    tab.wait_for_selector("[data-node=v99]", state="attached")
    tab.wait_for_selector(".verdict.careful")  # the table has no such columns, and it is said
    tab.click("text=Fit in")
    frames = tab.evaluate(FRAMES, 60)
    slow = slowness()
    assert frames >= 30 / slow, f"{frames:.0f} frames a second on a machine {slow:.1f} times busy"
    print(f"{frames:.0f} frames a second, {slow:.1f} times busy")
    tab.focus("text=Fit in")  # then by Tab to the drawing, and from node to node
    for stop in (None, "v0", "v1"):
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.dataset.node") == stop
    tab.click("text=Undo")
    for width in (1024, 390):
        tab.set_viewport_size({"width": width, "height": 768})
        for step in ("Table", "Graph", "Fit", "Ask", "Report", "Code", "Project"):
            go(tab, step)
            tab.wait_for_selector("main h1, main .canvas")
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, step
            found = [line for line in tab.evaluate(CONTRAST) if line["ratio"] < line["enough"]]
            assert found == [], step


def slowness():
    """How many times as long as it needs a computation takes here now: others use the machine."""
    start, used = time.perf_counter(), time.process_time()
    while time.process_time() - used < 0.2:
        pass
    return max(1.0, (time.perf_counter() - start) / 0.2)


def test_names_of_a_table_are_text(browser, tmp_path):
    bad = "<img src=x onerror=alert(1)>"
    frame = pd.DataFrame({bad: [1.0, 2.5, bad, None] * 5, "y": range(20)})
    frame.to_csv(tmp_path / "bad.csv", index=False)
    running = Running(tmp_path / "project", str(tmp_path / "bad.csv"), "--graph", f'"{bad}" -> y')
    tab = browser.new_page()
    tab.set_default_timeout(PATIENCE)
    said = []
    tab.on("dialog", lambda dialog: said.append(dialog.message) or dialog.dismiss())
    tab.goto(running.address)
    tab.wait_for_selector("table.columns th[scope=row]")
    assert bad in tab.inner_text("main")
    go(tab, "Graph")
    tab.wait_for_selector(".verdict")
    assert tab.locator("img").count() == 0
    assert said == []
    assert re.search("onerror", tab.inner_text("main"))
    tab.close()
    assert running.stop() == []
