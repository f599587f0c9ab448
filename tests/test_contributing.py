"""The pages are true: the worked example runs, links lead somewhere, the tour names real files."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MADE = {"_build", "_generated", "tutorials"}  # by `make docs`
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES += [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if MADE.isdisjoint(page.relative_to(ROOT / "docs").parts)
]
PAGES += [ROOT / "study" / "README.md", *sorted((ROOT / "study" / "docs").glob("*.md"))]


@pytest.mark.slow
def test_the_worked_example_runs_as_it_is_printed(tmp_path):
    """In a process of its own, since a kind of column stays registered."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)\s]*)\)", re.sub(r"`[^`\n]*`", "", text))
    for link in links:
        target, _, place = link.partition("#")
        aim = page.parent / target if target else page
        assert aim.exists(), f"{link} of {page.name} leads nowhere"
        if place:
            assert place in anchors(aim), f"{link} of {page.name}: no such heading"


def anchors(page):
    """Returns the headings of a page as links have them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in headings}


def test_the_tour_names_files_that_are_there():
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./]+(?:\.py|\.html|\.toml|\.md|/))`", text)) - {"misscnf/"}
    assert len(named) > 50
    rooms = ROOT / "misscnf", ROOT
    assert [name for name in named if not any((room / name).exists() for room in rooms)] == []
