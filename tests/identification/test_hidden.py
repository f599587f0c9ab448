"""Is an effect identified beside hidden causes? Classic graphs with known answers."""

import pytest

from misscnf.graph import CausalGraph
from misscnf.identification.hidden import effect_identified

MIAO = "u -> t; u -> y; u -> z; u -> w; z -> t; w -> y; t -> y"
CASES = {
    # name: (graph, latent, treatment, outcome, by, through)
    "back-door": ("a -> t; a -> y; t -> y; t <-> a", [], "t", "y", "back-door", ("a",)),
    "randomised": ("t -> m -> y; m <-> y", [], "t", "y", "back-door", ()),
    "confounded mediator": ("t -> m -> y; m <-> y", [], "m", "y", "shape", ()),
    "m-bias": (
        "u1 -> t; u1 -> m; u2 -> m; u2 -> y; t -> y",
        ["u1", "u2"],
        "t",
        "y",
        "back-door",
        (),
    ),
    "m-bias with an arrow": (
        "u1 -> t; u1 -> m; u2 -> m; u2 -> y; m -> t; t -> y",
        ["u1", "u2"],
        "t",
        "y",
        "shape",
        (),
    ),
    "butterfly": (
        "u1 -> t; u1 -> m; u2 -> m; u2 -> y; m -> t; m -> y; t -> y",
        ["u1", "u2"],
        "t",
        "y",
        "shape",
        (),
    ),
    "front-door": ("t -> tar -> y; t <-> y", [], "t", "y", "front-door", ("tar",)),
    "front-door of two": (
        "t -> a -> y; t -> b -> y; t <-> y",
        [],
        "t",
        "y",
        "front-door",
        ("a", "b"),
    ),
    "spoilt front-door": ("t -> m -> y; t <-> y; t <-> m", [], "t", "y", "shape", ()),
    "leaky front-door": ("t -> m -> y; t -> y; t <-> y", [], "t", "y", "shape", ()),
    "conditional front-door": (
        "x -> t; x -> m; x -> y; t -> m -> y; t <-> y",
        [],
        "t",
        "y",
        "formula",
        (),
    ),
    "bow": ("t -> y; t <-> y", [], "t", "y", "shape", ()),
    "instrument": ("z -> t -> y; t <-> y", [], "t", "y", "shape", ()),
    "effect of an instrument": ("z -> t -> y; t <-> y", [], "z", "y", "back-door", ()),
    "napkin": ("w -> b -> t -> y; w <-> t; w <-> y", [], "t", "y", "formula", ()),
    "verma": ("a -> b -> c -> d; b <-> d", [], "c", "d", "back-door", ("b",)),
    "verma, b": ("a -> b -> c -> d; b <-> d", [], "b", "d", "front-door", ("c",)),
    "no effect": ("t <-> y; t -> m", [], "t", "y", "no effect", ()),
    "miao": (MIAO, ["u"], "t", "y", "proxies", ()),
    "miao, z on t": (MIAO, ["u"], "z", "t", "shape", ()),
    "miao, w on y": (MIAO, ["u"], "w", "y", "shape", ()),
    "one proxy": ("u -> t; u -> y; u -> w; t -> y", ["u"], "t", "y", "shape", ()),
    "three noisy views": (
        "u -> t; u -> y; u -> w; u -> z; t -> y",
        ["u"],
        "t",
        "y",
        "proxies",
        (),
    ),
    "proxies that cause one another": (
        "u -> t; u -> y; u -> w; u -> z; z -> w; t -> y",
        ["u"],
        "t",
        "y",
        "shape",
        (),
    ),
    "proxies given a column": (
        "u -> t; u -> y; u -> w; u -> z; x -> w; x -> z; x -> t; x -> y; t -> y",
        ["u"],
        "t",
        "y",
        "proxies",
        (),
    ),
    "two causes, two proxies": (
        "u -> t; u -> y; v -> t; v -> y; u -> w; v -> z; t -> y",
        ["u", "v"],
        "t",
        "y",
        "shape",
        (),
    ),
    "two causes, four proxies": (
        "u -> t; u -> y; v -> t; v -> y; u -> w1; u -> z1; v -> w2; v -> z2; t -> y",
        ["u", "v"],
        "t",
        "y",
        "proxies",
        (),
    ),
    "a latent treatment": ("f -> x1; f -> x2; f -> y", ["f"], "f", "y", "shape", ()),
}


@pytest.mark.parametrize("name", CASES)
def test_known_answers(name):
    text, latent, treatment, outcome, by, through = CASES[name]
    found = effect_identified(CausalGraph.read(text, latent=latent), treatment, outcome)
    assert (found.by, found.through) == (by, through), found.sentence
    assert found.identified == (by not in ("shape", "proxies"))


def test_an_instrument_is_told():
    found = effect_identified(CausalGraph.read("z -> t -> y; t <-> y"), "t", "y")
    assert found.instruments == ("z",)
    assert "z is an instrument: bounds follow" in found.sentence
    assert "assumptions on hidden(t, y)" in found.sentence


def test_proxies_are_told_with_their_assumption():
    found = effect_identified(CausalGraph.read(MIAO, latent=["u"]), "t", "y")
    assert "if u is seen well enough by w and z (completeness)" in found.sentence


@pytest.mark.parametrize(
    ("classes", "states", "by"),
    [
        (None, {"w": 2, "z": None}, "shape"),  # two levels cannot tell a number
        (3, {"w": 2, "z": 5}, "shape"),
        (3, {"w": 3, "z": 5}, "proxies"),
        (2, {"w": 2, "z": 2}, "proxies"),
    ],
)
def test_a_proxy_needs_as_many_levels_as_the_hidden_cause(classes, states, by):
    graph = CausalGraph.read(MIAO, latent={"u": classes})
    assert effect_identified(graph, "t", "y", states).by == by


def test_a_block_of_confounders_is_a_back_door():
    graph = CausalGraph.read("w = {a, b}; w -> t; w -> y; t -> y; t <-> a")
    found = effect_identified(graph, "t", "y")
    assert (found.by, set(found.through)) == ("back-door", {"a", "b"})
