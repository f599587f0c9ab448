"""The pages of the site: what they print runs, each has a place, and nothing needs the network."""

import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
MADE = {"_build", "_generated", "tutorials"}  # by `make docs`
PAGES = {
    page.relative_to(DOCS).as_posix(): page.read_text(encoding="utf-8")
    for page in sorted(DOCS.rglob("*.md"))
    if MADE.isdisjoint(page.relative_to(DOCS).parts)
}
RUN = [name for name, text in PAGES.items() if "/" in name and "```python\n" in text]


def blocks(text):
    """Returns the Python of a page."""
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", [name for name in PAGES if blocks(PAGES[name])])
def test_what_a_page_prints_is_python(name):
    for block in blocks(PAGES[name]):
        ast.parse(block)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_a_page_runs_as_it_is_printed(name, tmp_path, monkeypatch):
    """Those in folders are whole programs; the others show calls on tables of the reader's."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(PAGES[name]):
        exec(compile(block, name, "exec"), names)


def test_every_page_has_a_place_on_the_site():
    placed = {"index.md"}
    for name, text in PAGES.items():
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            lines = [line for line in tree.splitlines() if line and not line.startswith(":")]
            aims = [(DOCS / name).parent / f"{line}.md" for line in lines]
            placed |= {aim.resolve().relative_to(DOCS).as_posix() for aim in aims}
    assert set(PAGES) - placed == set()


def test_pages_fetch_nothing_from_elsewhere():
    for name, text in PAGES.items():
        assert not re.search(r"!\[[^\]]*\]\(https?:", text), name
    assert "https://" not in (DOCS / "conf.py").read_text(encoding="utf-8")
