"""Small fitted models and their pages, made once and read by many tests."""

import re
from dataclasses import dataclass
from html.parser import HTMLParser

import pandas as pd
import pytest
import torch
from small_tables import EDGES, mixed_table, table_with_a_gap

from misscnf import MissCNF
from misscnf.report import write_report


@dataclass
class Page:
    """A page as it was written, with what it was written about."""

    model: MissCNF
    df: pd.DataFrame
    html: str

    @property
    def text(self):
        """What a reader sees, on one line."""
        reader = _Reader()
        reader.feed(self.html)
        return re.sub(r"\s+", " ", "".join(reader.words)).replace("\N{NO-BREAK SPACE}", " ")

    @property
    def tags(self):
        """Every tag with its attributes."""
        reader = _Reader()
        reader.feed(self.html)
        return reader.tags

    def alts(self, start):
        """The words for pictures that start so."""
        alts = [dict(attributes).get("alt") or "" for tag, attributes in self.tags if tag == "img"]
        return [alt.replace("\N{NO-BREAK SPACE}", " ") for alt in alts if alt.startswith(start)]


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.words, self.tags, self.hidden = [], [], False

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, attrs))
        self.hidden = tag == "style"
        self.words.append(" ")

    def handle_endtag(self, tag):
        self.hidden = False

    def handle_data(self, data):
        if not self.hidden:
            self.words.append(data)


@pytest.fixture(scope="session")
def make_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")

    def make(model, df, name, **asked):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        path = folder / f"{name}.html"
        write_report(model, df, path, **asked)
        torch.set_default_dtype(before)
        return Page(model, df, path.read_text(encoding="utf-8"))

    make.folder = folder
    return make


@pytest.fixture(scope="session")
def mixed():
    table = mixed_table()
    kinds = {"t": "binary", "stage": "categorical"}
    return MissCNF(EDGES, preset="linear", kinds=kinds, progress=False).fit(table), table


@pytest.fixture(scope="session")
def gap():
    table = table_with_a_gap()
    return MissCNF("a -> b; b -> c", preset="linear", progress=False).fit(table), table


@pytest.fixture(scope="session")
def answered(make_page, mixed):
    """A two-level treatment, with intervals."""
    return make_page(*mixed, "answered", effect=("t", "y"), replicates=5)


@pytest.fixture(scope="session")
def with_a_gap(make_page, gap):
    """A continuous treatment, in a table with a region that is never seen."""
    return make_page(*gap, "gap", effect=("b", "c"), interval=None)


@pytest.fixture(scope="session")
def unasked(make_page, gap):
    return make_page(*gap, "unasked")


@pytest.fixture(scope="session")
def by_ward(make_page, mixed):
    """A treatment and an outcome with levels that have no order."""
    return make_page(*mixed, "ward", effect=("ward", "stage"), interval=None)
