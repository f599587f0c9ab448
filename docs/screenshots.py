"""Screenshots of a report for docs/: the demo's page, on a desk and on a phone.

    make screenshots
    .venv/bin/python docs/screenshots.py report.html     # of a page that is there already

Fits NHEFS as `misscnf demo` does, writes its report and photographs the top of it. Needs Chromium.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from misscnf import MissCNF
from misscnf.data.nhefs import OUTCOME, TREATMENT, load_nhefs, nhefs_graph
from misscnf.report import write_report

HERE = Path(__file__).parent
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
]
SHOTS = {"report-desktop.png": (1100, 2850, 1.0), "report-phone.png": (390, 3480, 1.5)}
"""Width and height in pixels of the page, and how many of the picture make one of them."""


def make_report(path: Path) -> None:
    """Fits the demo's model and writes its report."""
    df = load_nhefs()
    model = MissCNF(nhefs_graph(), seed=0).fit(df)
    write_report(model, df, path, effect=(TREATMENT, OUTCOME))


def photograph(browser: Browser, page: Path, name: str) -> None:
    """Takes the picture of the top of a page."""
    width, height, scale = SHOTS[name]
    tab = browser.new_page(viewport={"width": width, "height": height}, device_scale_factor=scale)
    tab.goto(page.resolve().as_uri())
    target = HERE / name
    tab.screenshot(path=target)
    tab.close()
    print(f"{target.name}: {target.stat().st_size / 1000:.0f} kB")


def main() -> None:
    """Makes the report, unless one is named, and both pictures."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is not installed; on Debian, `apt-get install chromium`.")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "report.html"
        if len(sys.argv) == 1:
            make_report(page)
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for name in SHOTS:
            photograph(browser, page, name)
        browser.close()


if __name__ == "__main__":
    main()
