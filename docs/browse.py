"""Opens the built site in a browser: search finds, nothing fails, nothing is fetched.

    make docs && .venv/bin/python docs/browse.py            # exits 1 where something is wrong
    .venv/bin/python docs/browse.py --pictures folder       # and takes pictures, wide and narrow

Needs Chromium. The site is served from this machine; a request to any other is an error.
"""

from __future__ import annotations

import functools
import http.server
import shutil
import sys
import threading
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from screenshots import FLAGS

SITE = Path(__file__).parent / "_build" / "html"
SEARCHES = {
    "interval": "intervals.html",
    "sensitivity": "sensitivity.html",
    "lavaan": "howto/migrating.html",
    "MissCNFImputer": "misscnf.MissCNFImputer.html",
}
"""Words, and what one of the pages found has to be."""
PICTURED = ("index", "start/tour", "tutorials/index", "tutorials/quitting_smoking")
PICTURED += ("_generated/api/misscnf.MissCNF", "explanation/likelihood", "intervals")
PICTURED += ("api", "commands", "_generated/command", "benchmarks", "results/index", "tasks")
WIDTHS = {"desktop": 1280, "phone": 390}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, *said: object) -> None:
        """Says nothing."""


def watched(browser: Browser, width: int, wrong: list[str]) -> Page:
    """Opens a tab that notes what fails in it."""
    tab = browser.new_page(viewport={"width": width, "height": 900})
    tab.on("console", lambda m: wrong.append(f"console: {m.text}") if m.type == "error" else None)
    tab.on("pageerror", lambda problem: wrong.append(f"script: {problem}"))
    tab.on("requestfailed", lambda asked: _left(asked.failure) or wrong.append(asked.url))
    tab.on("request", lambda asked: _own(asked.url) or wrong.append(f"fetched: {asked.url}"))
    return tab


def _left(failure: str | None) -> bool:
    """Whether a request ended since its page was left."""
    return "ERR_ABORTED" in (failure or "")


def _own(address: str) -> bool:
    return address.startswith(("http://127.0.0.1", "data:", "blob:"))


def visit(browser: Browser, root: str, pictures: Path | None) -> list[str]:
    """Opens every page, searches, and returns what was wrong."""
    wrong: list[str] = []
    tab = watched(browser, WIDTHS["desktop"], wrong)
    for page in sorted(SITE.rglob("*.html")):
        if "_static" not in page.parts:
            tab.goto(f"{root}/{page.relative_to(SITE).as_posix()}")
    for words, wanted in SEARCHES.items():
        tab.goto(f"{root}/search.html?q={words}")
        tab.wait_for_selector("#search-results li a", timeout=20_000)
        tab.wait_for_timeout(1500)
        links = tab.eval_on_selector_all("#search-results li a", "all => all.map(a => a.href)")
        if not any(wanted in link for link in links):
            wrong.append(f"search: {words!r} does not find {wanted}")
    for device, width in WIDTHS.items():
        tab = watched(browser, width, wrong)
        for name in PICTURED:
            tab.goto(f"{root}/{name}.html")
            tab.wait_for_timeout(500)
            over = tab.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            if over > 1:
                wrong.append(f"{name} is {over} pixels too wide on a {device}")
            if pictures is not None:
                tab.screenshot(path=pictures / f"{name.replace('/', '-')}-{device}.png")
    return wrong


def main() -> None:
    """Serves the site and visits it."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is not installed; on Debian, `apt-get install chromium`.")
    if not (SITE / "index.html").exists():
        sys.exit("The site is not built; `make docs` builds it.")
    pictures = Path(sys.argv[2]) if sys.argv[1:2] == ["--pictures"] else None
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
    handler = functools.partial(Quiet, directory=str(SITE))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        wrong = visit(browser, f"http://127.0.0.1:{server.server_port}", pictures)
        browser.close()
    pages = sum("_static" not in page.parts for page in SITE.rglob("*.html"))
    print(f"{pages} pages, {len(SEARCHES)} searches, {len(wrong)} things wrong")
    sys.exit("\n".join(dict.fromkeys(wrong)) or 0)


if __name__ == "__main__":
    main()
