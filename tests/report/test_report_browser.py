"""A page in a real browser: nothing missing or fetched, readable wide, narrow and printed."""

import base64
import itertools
import re
import shutil

import pytest
from contrast import CONTRAST

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
]
WIDTHS = (390, 1280)
PAGES = ("answered", "with_a_gap", "by_ward", "unasked")

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium is installed, and the page is opened in it"
)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(params=PAGES)
def tab(request, browser, tmp_path):
    """The page in a tab, with everything it complained of or asked for."""
    path = tmp_path / "report.html"
    path.write_text(request.getfixturevalue(request.param).html, encoding="utf-8")
    tab = browser.new_page()
    tab.complaints, tab.fetched = [], []
    tab.on("console", lambda message: tab.complaints.append(message.text))
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.on("request", lambda asked: tab.fetched.append(asked.url))
    tab.goto(path.as_uri())
    tab.address = path.as_uri()
    yield tab
    tab.close()


def test_the_page_opens_in_peace_and_alone(tab):
    tab.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    tab.wait_for_load_state("networkidle")
    assert tab.complaints == []
    assert {url for url in tab.fetched if not url.startswith("data:")} == {tab.address}


def test_every_picture_loads_and_says_what_it_shows(tab):
    pictures = tab.evaluate(
        "[...document.images].map(i => [i.complete, i.naturalWidth, i.alt.length])"
    )
    assert len(pictures) >= 5
    assert all(done and width > 0 and words > 20 for done, width, words in pictures)


def test_headings_go_down_one_level_at_a_time(tab):
    levels = tab.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(h => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_links_lead_somewhere(tab):
    dead = tab.evaluate(
        "[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))"
        ".filter(to => !document.querySelector(to))"
    )
    assert dead == []


def test_a_link_opens_the_part_that_it_leads_to(tab):
    tab.click("a[href='#in-graph']")
    assert tab.evaluate("document.querySelector('#in-graph').closest('details').open")


def test_text_stands_out_from_its_ground(tab):
    """WCAG 2 AA: 4.5 to 1, and 3 to 1 for large letters."""
    tab.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    found = tab.evaluate(CONTRAST)
    assert len(found) > 50
    assert [line for line in found if line["ratio"] < line["enough"]] == []
    assert min(line["size"] for line in found) >= 12


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out_of_the_page(tab, width):
    tab.set_viewport_size({"width": width, "height": 800})
    tab.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    boxes = tab.evaluate(
        "[...document.querySelectorAll('main > *, img, pre, .scroll')].map(e => {"
        "const b = e.getBoundingClientRect(); return [e.tagName, b.left, b.right]})"
    )
    assert [box for box in boxes if box[1] < -1 or box[2] > width + 1] == []


def test_long_numbers_beside_the_answer_fold_on_a_phone(tab):
    tab.set_viewport_size({"width": 390, "height": 800})
    tab.evaluate(
        "document.querySelectorAll('table.beside td.number:last-child')"
        ".forEach(cell => cell.textContent = '−1,234.567 (−12,345.678 to −1,234.567)')"
    )
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_letters_of_pictures_can_be_read_on_a_phone(tab):
    tab.set_viewport_size({"width": 390, "height": 800})
    pictures = tab.evaluate(
        "[...document.images].map(i => [i.src, i.getBoundingClientRect().width])"
    )
    for source, width in pictures:
        if width == 0:  # inside a part that is closed
            continue
        drawn = base64.b64decode(source.partition(",")[2]).decode()
        natural = float(re.search(r'<svg[^>]* width="([\d.]+)pt"', drawn)[1])
        sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", drawn)]
        assert min(sizes) * width / natural >= 7.5


def test_the_page_prints(tab):
    tab.emulate_media(media="print")
    printed = tab.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    pages = len(re.findall(rb"/Type\s*/Page\b", printed))
    assert 2 <= pages <= 20
    assert tab.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") == "none"
    # Paper cannot be unfolded: what is folded on a screen takes its room there.
    room = tab.evaluate(
        "[...document.querySelectorAll('details')]"
        ".map(e => e.offsetHeight - e.lastElementChild.offsetHeight)"
    )
    assert min(room) >= 0
