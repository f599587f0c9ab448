"""Where the site leads from a name, and what it shows of a class before its full text."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("sphinx")
sys.path.append(str(Path(__file__).parent.parent / "docs"))
names = pytest.importorskip("names")


@pytest.mark.parametrize(
    ("word", "target"),
    [
        ("MissCNF", "misscnf.MissCNF"),
        ("MissCNF.effect", "misscnf.MissCNF.effect"),
        ("model.effect(…)", "misscnf.MissCNF.effect"),
        ("effect.to_latex()", "misscnf.Effect.to_latex"),
        ("plots.forest", "misscnf.plots.forest"),
        ("pool(tables, mean)", "misscnf.pool"),
        ("misscnf.check", "misscnf.check"),
        ("write_report", "misscnf.write_report"),
        ("Gaussian", "misscnf.mechanisms.Gaussian"),
        ("model.forms_", "misscnf.MissCNF"),  # what a fit leaves is told on the page of its class
        ("check", None),  # a verb of the command as well
        ("model.nothing", None),
        ("age -> dose", None),
        ("report.md", None),
    ],
)
def test_a_name_leads_to_its_page(word, target):
    assert names.target_of(word) == target


def test_a_class_shows_its_methods_in_the_order_of_an_analysis():
    told = names.methods("misscnf", "MissCNF")
    assert list(told)[:4] == ["fit", "check", "effect", "curve"]
    assert told["fit"] == "Fits the flow to a table, NaN where a value is unknown."
    assert "set_fit_request" not in told
    last = list(told).index("chosen_")
    assert not {"save", "load", "score"} & set(list(told)[last:])


def test_attributes_keep_their_underscore_and_pages_become_links():
    lines = [
        "Fits.",
        "",
        "Attributes:",
        "    graph_: The graph (docs/hidden.md),",
        "        fitted.",
    ]
    found = type("Model", (), {"__annotations__": {"graph_": "CausalGraph"}})
    names.as_restructured_text(None, "class", "Model", found, SimpleNamespace(), lines)
    assert lines[2:] == [
        ".. rubric:: Attributes",
        "",
        "``graph_`` : *CausalGraph*",
        "    The graph (:doc:`/hidden`),",
        "    fitted.",
    ]
