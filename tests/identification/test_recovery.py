"""What identifies a loss, on m-graphs whose answer is known."""

import numpy as np
import pandas as pd
import pytest

from misscnf import CausalGraph, check
from misscnf.identification.recovery import losses_identified

# Graph, columns that are always shown, and by column what identifies its loss. Answers by the
# rules of Mohan and Pearl (2021), Nabi et al. (2020) and Miao and Tchetgen Tchetgen (2016).
GRAPHS = {
    "MAR": ("x -> y; x -> missing(y)", "x", {"y": "ignorable"}),
    "MCAR drawn": ("x -> y; missing(y)", "x", {"y": "ignorable"}),
    "by a loss": (
        "x -> y; x -> missing(y); w -> x; w -> missing(x) -> missing(y)",
        "w",
        {"x": "ignorable", "y": "shape"},
    ),
    "self-masked, parent shown": ("x -> y -> missing(y)", "x", {"y": "shadow"}),
    "self-masked, child shown": ("y -> z; y -> missing(y)", "z", {"y": "shadow"}),
    "self-masked alone": ("y -> missing(y)", "", {"y": "shape"}),
    "self-masked, the parent drives it too": (
        "x -> y -> missing(y); x -> missing(y)",
        "x",
        {"y": "shape"},
    ),
    "self-masked, one parent drives, another not": (
        "x, w -> y; y, x -> missing(y)",
        "x w",
        {"y": "shadow"},
    ),
    "self-masked, the shadow is lost too": ("x -> y -> missing(y); x -> missing(x)", "",
                                            {"x": "shape", "y": "shape"}),
    "self-masked, an unrelated column": ("x; y -> missing(y)", "x", {"y": "shape"}),
    "block-parallel": ("x -> y; x -> missing(y); y -> missing(x)", "",
                       {"x": "full law", "y": "full law"}),
    "colluder": ("x -> y; x, missing(x) -> missing(y); y -> missing(x)", "",
                 {"x": "shape", "y": "shape"}),
    "hidden driver that is no value of its own": (
        "x -> y; x -> missing(y); missing(x)",
        "",
        {"x": "ignorable", "y": "full law"},
    ),
    "a shadow by way of a collider that is given": (
        "x -> w; y -> w; y, w -> missing(y)",
        "x w",
        {"y": "shadow"},
    ),
    "drop-out follows drop-out": (
        "x -> y -> z; x -> missing(y) -> missing(z); x -> missing(z)",
        "x",
        {"y": "ignorable", "z": "ignorable"},
    ),
    "a value and its loss tied": ("x -> y; y <-> missing(y)", "x", {"y": "shape"}),
    "tied, a child shown": ("x -> y -> z; y <-> missing(y)", "x z", {"y": "shadow"}),
    "two losses tied": ("x -> y; x -> missing(y); missing(x) <-> missing(y)", "",
                        {"x": "shape", "y": "shape"}),
    "two losses tied, nothing drives them": ("x -> y; missing(x) <-> missing(y)", "",
                                             {"x": "full law", "y": "full law"}),
    "a path of ties": ("x -> y; x <-> missing(y); missing(y) <-> missing(x)", "",
                       {"x": "shape", "y": "shape"}),
    "tied to another value alone": ("x -> y; x <-> missing(y); missing(x)", "",
                                    {"x": "ignorable", "y": "full law"}),
}  # fmt: skip


def seen(graph, shown):
    """Every pattern of holes of the columns that are not always shown."""
    columns = [
        i for i, n in enumerate(graph.nodes) if n not in shown and i not in graph.indicators
    ]
    observed = np.ones((2 ** len(columns), len(graph)), dtype=bool)
    for bit, i in enumerate(columns):
        observed[:, i] = (np.arange(len(observed)) >> bit) % 2 == 0
    return observed


@pytest.mark.parametrize(("text", "shown", "expected"), GRAPHS.values(), ids=GRAPHS)
def test_known_answers(text, shown, expected):
    graph = CausalGraph.read(text)
    found = losses_identified(graph, seen(graph, shown.split()))
    assert {recovery.column: recovery.by for recovery in found} == expected
    assert all(recovery.sentence.startswith("The loss of") for recovery in found)


def test_drop_out_that_never_comes_back_is_ignorable():
    graph = CausalGraph.read("x -> y -> z; x -> missing(y); y, missing(y) -> missing(z)")
    y, z = graph.nodes.index("y"), graph.nodes.index("z")
    observed = np.ones((3, 5), dtype=bool)
    observed[1, z] = observed[2, z] = observed[2, y] = False
    assert {r.column: r.by for r in losses_identified(graph, observed)} == {
        "y": "ignorable",
        "z": "ignorable",
    }
    observed[0, y] = False  # one came back: now y is hidden where z is not
    assert {r.column: r.by for r in losses_identified(graph, observed)}["z"] != "ignorable"


def test_colluders_and_shadows_are_named():
    graph = CausalGraph.read("x -> y; x, missing(x) -> missing(y); y -> missing(x)")
    found = {r.column: r for r in losses_identified(graph, seen(graph, []))}
    assert found["y"].colluder == "x"
    graph = CausalGraph.read("x -> y -> missing(y)")
    (only,) = losses_identified(graph, seen(graph, ["x"]))
    assert only.shadow == "x"
    graph = CausalGraph.read("x -> y; y <-> missing(y)")
    (tied,) = losses_identified(graph, seen(graph, ["x"]))
    assert tied.tied
    assert "y and its loss have a hidden cause in common" in tied.sentence


def test_check_says_it():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    df = pd.DataFrame({"x": x, "y": x + rng.normal(size=400)})
    df.loc[df["y"] > 1.0, "y"] = np.nan
    report = check(df, "x -> y", loss={"y": ["y"]})
    assert report.recovery[0].by == "shadow"
    assert "x is a shadow variable" in report.summary()
    assert report.to_dict()["recovery"][0]["shadow"] == "x"


def test_families_that_an_identified_loss_reaches():
    """High y are lost, so no row shows x → y where x is high: a gap, unless the loss is told."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    y = x + 0.2 * rng.normal(size=3000)
    lost = rng.random(3000) < 1.0 / (1.0 + np.exp(-8.0 * (y - 0.5)))
    df = pd.DataFrame({"x": x, "y": np.where(lost, np.nan, y)})
    ignored, told, shape = (
        check(df, "x -> y", loss=loss) for loss in (None, {"y": ["y"]}, {"y": ["y", "x"]})
    )
    assert (ignored.uncovered, ignored.reached) == (("y",), ())
    assert (told.uncovered, told.reached) == ((), ("y",))
    assert "reached by the modelled loss: y" in str(told)
    assert "no region without them found: y" not in str(told)
    assert shape.uncovered == ("y",)  # its shape alone identifies it: nothing is claimed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x -> y; x -> missing(y)", "driven by x, always shown or lost only where y is lost too:"),
        ("x -> y; missing(y)", "The loss of y is by chance alone: it is ignorable"),
    ],
)
def test_an_ignorable_loss_says_what_drives_it(text, said):
    observed = np.array([[True, True], [True, False], [True, True]])
    graph = CausalGraph.read(text)
    shown = np.column_stack([observed, np.ones(3, dtype=bool)])  # the indicator too
    assert said in losses_identified(graph, shown)[0].sentence
