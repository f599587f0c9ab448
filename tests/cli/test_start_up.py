"""What a command imports before it knows that it is asked for something that can be done."""

import json
import subprocess
import sys

import pytest

from misscnf.cli.inputs import PRESETS
from misscnf.data.model_file import own_digest
from misscnf.fitting import settings

EFFECT = ["effect", "model", "--on", "y"]
BAD = {
    "outcome": ["effect", "model", "--on", "yy"],
    "treatment": [*EFFECT, "--do", "tt=1"],
    "level": [*EFFECT, "--do", "t=7"],
    "words": [*EFFECT, "--do", "dose"],
    "grid": [*EFFECT, "--do", "dose=5:1:1"],
    "rule": [*EFFECT, "--do", "dose=min(doze, 2)"],
    "draw": [*EFFECT, "--do", "dose=normal(2)"],
    "second arm": [*EFFECT, "--do", "t=1", "--versus", "t=no"],
    "column of a condition": [*EFFECT, "--do", "t=1", "--where", "agee > 60"],
    "one equals sign": [*EFFECT, "--do", "t=1", "--where", "sex = 'f'"],
    "a text that is no number": [*EFFECT, "--do", "t=1", "--where", "sex > 3"],
    "no condition": [*EFFECT, "--do", "t=1", "--where", "age + 1"],
    "groups": [*EFFECT, "--do", "t=1", "--by", "sexx"],
    "event": ["effect", "model", "--on", "stage", "--do", "t=1", "--event", "middle"],
    "level of an interval": [*EFFECT, "--do", "t=1", "--interval", "95"],
    "no table": [*EFFECT, "--do", "t=1", "--interval", "0.95"],
    "no such table": [*EFFECT, "--do", "t=1", "--data", "no.csv"],
    "effect of a page": ["report", "model", "data.csv", "--effect", "t:yy", "--out", "r.html"],
    "groups of a page": [
        *["report", "model", "data.csv", "--effect", "t:y", "--group", "sexx"],
        *["--out", "r.html"],
    ],
    "sensitivity": [
        *["sensitivity", "model", "--on", "y", "--do", "t=7", "--shift", "0:1:0.5"],
        *["--data", "data.csv"],
    ],
    "sample": ["sample", "model", "--rows", "5", "--do", "t=7"],
    "counterfactual": ["counterfactual", "model", "data.csv", "--do", "t=7"],
    "impute": ["impute", "model", "no.csv"],
    "log-prob": ["log-prob", "model", "data.csv", "--given", "agee"],
    "preset": ["fit", "data.csv", "--graph", "t -> y", "--out", "m", "--preset", "fast"],
    "graph": ["fit", "data.csv", "--graph", "t -> y; y -> t", "--out", "m"],
    "table of a fit": ["fit", "no.csv", "--graph", "t -> y", "--out", "m"],
    "effect of a check": ["check", "data.csv", "--graph", "t -> y", "--effect", "t:z"],
    "a folder that is no model": ["effect", ".", "--on", "y"],
}

ASKED = """
import json, sys
from typer.testing import CliRunner
from misscnf.cli.app import app
for name, words in json.loads(sys.argv[1]).items():
    done = CliRunner().invoke(app, words)
    late = [name for name in ("torch", "sklearn", "scipy.stats") if name in sys.modules]
    assert done.exit_code == 2, (name, done.output)
    assert not late, (name, late)
done = CliRunner().invoke(app, ["effect", "model", "--on", "y", "--do", "t=1"])
assert done.exit_code == 0, done.output
import torch
from misscnf.mechanisms import Conditioner, Spline
law = Spline(1).double().requires_grad_(False)
law.generate(torch.zeros(3).double(), torch.zeros(3, 1).double())  # and noise that is no normal
with torch.device("meta"):  # as a saved model with a curve is first looked at
    Conditioner(2, 1, curve=(3, 1, 5))
unasked = "sympy sklearn scipy.stats scipy.optimize matplotlib misscnf.fitting.fit".split()
late = [name for name in unasked if name in sys.modules]
assert not late, late
"""


def test_a_bad_option_waits_for_no_torch_and_a_good_one_for_nothing_that_it_does_not_need(here):
    words = [sys.executable, "-c", ASKED, json.dumps(BAD)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_presets_of_the_command_are_those_of_the_settings():
    assert tuple(settings.PRESETS) == PRESETS


@pytest.mark.parametrize("damage", ["columns", "graph"])
def test_an_outline_that_makes_no_sense_is_told_by_the_model_itself(call, here, damage):
    path = here / "model" / "model.json"
    content = json.loads(path.read_text())
    if damage == "columns":
        content["about"]["schema"]["columns"][0]["kind"] = "colour"
    else:
        content["graph"] = {"a": 3}
    content["digest"] = own_digest(content)
    path.write_text(json.dumps(content))
    done = call("effect model --on y --do t=1")
    assert done.exit_code == 2
    assert "describes no model" in done.stderr
