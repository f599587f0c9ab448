"""Blocks on the command line: --block and the text of a graph say the same."""

import json

from misscnf import MissCNF

ARROWS = "w -> t; w, t -> y"


def test_a_block_is_checked_fitted_and_asked(call, here):
    block = ["--block", "w: age, sex, dose"]
    told = call(["check", "data.csv", "--graph", ARROWS, *block, "--effect", "t:y"])
    assert "needs the law of w, y with its parents w, t." in told.stdout
    given = ["--preset", "linear", "--json", "--out"]
    fitted = call(["fit", "data.csv", "--graph", ARROWS, *block, *given, "one"])
    assert fitted.exit_code == 0
    assert next(iter(json.loads(fitted.stdout)["blocks"]["w"])) == "dose"  # it has no holes
    text = "{age, sex, dose} -> t; {age, sex, dose}, t -> y"
    assert call(["fit", "data.csv", "--graph", text, *given, "two"]).exit_code == 0
    one, two = MissCNF.load(here / "one"), MissCNF.load(here / "two")
    assert one.graph_.edges == two.graph_.edges
    ask = ["--on", "y", "--do", "t=1", "--versus", "t=0", "--json"]
    said = json.loads(call(["effect", "one", *ask, "--data", "data.csv"]).stdout)
    effect = two.effect("y", do={"t": 1}, versus={"t": 0}, data="data.csv")
    assert (said["estimate"], said["population"]) == (effect.estimate, "rows")
    of_model = json.loads(call(["effect", "one", *ask, "--population", "model"]).stdout)
    assert abs(of_model["estimate"] - effect.estimate) < 1e-6  # a line has one effect for all


def test_what_blocks_refuse_is_said_by_the_option(call):
    assert (
        "--block 'w age'"
        in call(["check", "data.csv", "--graph", ARROWS, "--block", "w age"]).stderr
    )
    both = ["--block", "w: age, sex", "--block", "v: age"]
    assert (
        "'age' is in the blocks 'w' and 'v'"
        in call(["check", "data.csv", "--graph", ARROWS, *both]).stderr
    )
    fit = ["fit", "data.csv", "--graph", ARROWS, "--block", "w: age, sex", "--preset", "linear"]
    assert call([*fit, "--out", "m"]).exit_code == 0
    ask = ["effect", "m", "--on", "y", "--do"]
    assert "needs --data" in call([*ask, "t=1"]).stderr
    refused = call([*ask, "age=60", "--data", "data.csv"])
    assert refused.exit_code == 2
    assert "'age' is a member of the block 'w'" in refused.stderr
