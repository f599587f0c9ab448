"""A studio as a person starts it, and hands that click and pull on its page."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium is installed, and the page needs it"
)
PATIENCE = 60_000
"""Milliseconds: a machine may be busy with other tests."""


class Running:
    """`misscnf studio` in a process of its own, by the Python that has it."""

    def __init__(self, folder, *words, python=sys.executable, **how):
        self.folder = folder
        command = [python, "-m", "misscnf", "studio", *words]
        command += ["--project", str(folder), "--no-browser", "--quiet", "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **how)
        lines = iter(self.process.stdout.readline, "")
        told = "".join(line for _, line in zip(range(4), lines, strict=False))
        self.address = json.loads(told)["address"]

    @property
    def workers(self):
        """The processes that it has started."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(word) for word in path.read_text().split()]

    def stop(self):
        """Stops it as Ctrl-C does, and returns its workers of before that still run."""
        workers = self.workers
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(30) == 0
        self.process.stdout.close()
        time.sleep(0.2)
        return [pid for pid in workers if Path(f"/proc/{pid}").exists()]

    def end(self):
        """Ends it at once, whether it runs or not."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    @property
    def kept(self):
        """What the project's file holds."""
        return json.loads((self.folder / "project.json").read_text())


def go(tab, step):
    tab.click(f"nav[aria-label=Steps] button:has-text('{step}')")


def middle(tab, selector):
    box = tab.locator(selector).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def pull(tab, start, end):
    tab.mouse.move(*start)
    tab.mouse.down()
    tab.mouse.move(*end, steps=4)
    tab.mouse.up()


def draw_arrow(tab, cause, effect, over=None):
    """Pulls an arrow from the circle below a node, which shows itself under the mouse."""
    tab.hover(over or f"[data-node={cause}] text")
    pull(tab, middle(tab, f"[data-handle={cause}]"), middle(tab, f"[data-node={effect}] rect"))
    tab.wait_for_selector(f"[data-from={cause}][data-to={effect}]", state="attached")


def click_arrow(tab, selector):
    """Clicks halfway along an arrow, which may bow: the middle of its box may lie beside it."""
    at = tab.eval_on_selector(
        f"{selector} .reach",
        """arrow => {
            const middle = arrow.getPointAtLength(arrow.getTotalLength() / 2)
            const { x, y } = middle.matrixTransform(arrow.getScreenCTM())
            return [x, y]
        }""",
    )
    tab.mouse.click(*at)


def verdict(tab, words):
    tab.wait_for_selector(f".verdict:has-text('{words}')")


def until(holds, seconds=60):
    """Waits until something holds: what a page has sent takes a moment to be kept."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.1)
