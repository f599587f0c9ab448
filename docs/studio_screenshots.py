"""Screenshots of the studio for docs/: the guided example, step by step.

    make screenshots

Starts `misscnf studio`, opens the guided example in Chromium, fits it with the preset linear,
asks, and photographs each step. Needs Chromium and the extra studio.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


def photograph(tab: Page, name: str, *, whole: bool = False) -> None:
    """Takes a picture of what the page shows, or of all of it."""
    target = HERE / f"studio-{name}.png"
    tab.evaluate("scrollTo(0, 0)")
    tab.evaluate("document.querySelector('header').style.position = 'static'")
    tab.wait_for_timeout(400)
    tab.screenshot(path=target, full_page=whole)
    print(f"{target.name}: {target.stat().st_size / 1000:.0f} kB")


def go(tab: Page, step: str) -> None:
    """Goes to a step."""
    tab.click(f"nav[aria-label=Steps] button:has-text('{step}')")


def take_all(tab: Page) -> None:
    """Walks through the guided example."""
    tab.click("text=Open the guided example")
    tab.wait_for_selector("table.columns")
    tab.wait_for_selector(".why:has-text('numbers with fractions')")
    photograph(tab, "table")
    go(tab, "Graph")
    tab.wait_for_selector(".verdict.fine")
    photograph(tab, "graph")
    tab.click("text=hidden cause")
    for effect in ("qsmk", "wt82_71"):
        tab.select_option(".selected select", effect)
    tab.click("text=Arrange")
    tab.click("text=Fit in")
    tab.wait_for_selector(".verdict.careful")
    tab.wait_for_selector(".check[aria-busy=false]")
    photograph(tab, "hidden")
    for _ in range(4):  # the hidden cause, its arrows and their arrangement
        tab.keyboard.press("Control+z")
    go(tab, "Fit")
    tab.check("label:has-text('linear') input")
    tab.click("main button.primary:has-text('Fit')")
    tab.wait_for_selector("text=The fitted model")
    photograph(tab, "fit")
    go(tab, "Ask")
    tab.click("form button.primary")
    tab.wait_for_selector("[data-answer='1']")
    tab.click("text=Who, and what of it")
    tab.check("label:has-text('only those who take') input")
    tab.click("form button.primary")
    tab.wait_for_selector("[data-answer='2']")
    tab.click("text=Who, and what of it")
    photograph(tab, "ask", whole=True)
    tab.click("text=If the loss is worse")
    tab.fill(".short:has-text('to') input >> nth=0", "8")
    tab.fill(".short:has-text('steps') input", "2")
    tab.select_option("label:has-text('both arms') select", "do")
    tab.click("form button.primary")
    tab.wait_for_selector("[data-answer='3'] .chart")
    photograph(tab, "worse")
    tab.set_viewport_size({"width": 1024, "height": 768})
    go(tab, "Graph")
    tab.click("text=Fit in")
    photograph(tab, "1024")
    tab.set_viewport_size({"width": 390, "height": 844})
    go(tab, "Graph")
    tab.click("text=Fit in")
    tab.wait_for_selector(".verdict.fine")
    tab.wait_for_selector(".check[aria-busy=false]")
    photograph(tab, "phone", whole=True)


def main() -> None:
    """Starts the studio and takes the pictures."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is not installed; on Debian, `apt-get install chromium`.")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        words = ["studio", "--project", "misscnf-studio", "--no-browser", "--json", "--quiet"]
        command = [sys.executable, "-m", "misscnf", *words]
        studio = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
        assert studio.stdout is not None
        told = "".join(line for _, line in zip(range(4), studio.stdout, strict=False))
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        tab = browser.new_page(viewport={"width": 1280, "height": 800})
        tab.set_default_timeout(300_000)
        tab.goto(json.loads(told)["address"])
        take_all(tab)
        browser.close()
        studio.send_signal(signal.SIGINT)
        studio.wait()


if __name__ == "__main__":
    main()
