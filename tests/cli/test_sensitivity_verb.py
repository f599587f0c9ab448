"""`misscnf sensitivity`: the answer of Python, files, and sentences for what cannot be asked."""

import json

import numpy as np
import pandas as pd
import pytest

from misscnf import MissCNF

ASKED = ["sensitivity", "m", "--on", "y", "--do", "dose=1", "--versus", "dose=0"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    rng = np.random.default_rng(0)
    dose = rng.normal(size=300)
    y = dose + rng.normal(size=300)
    frame = pd.DataFrame({"dose": dose, "y": y})
    frame["y"] = frame["y"].mask(rng.random(300) < 1 / (1 + np.exp(-2 * y)))
    folder = tmp_path_factory.mktemp("sensitivity")
    frame.to_csv(folder / "lost.csv", index=False)
    model = MissCNF("dose -> y", "linear", progress=False).fit(frame)
    model.save(folder / "m")
    return folder, model


@pytest.fixture
def there(fitted, monkeypatch):
    monkeypatch.chdir(fitted[0])
    return fitted[1]


def test_the_verb_says_what_python_says(call, there):
    ended = call([*ASKED, "--shift", "-3:0:1", "--arm", "do", "--data", "lost.csv", "--json"])
    assert ended.exit_code == 0, ended.stderr
    told = json.loads(ended.stdout)
    own = there.sensitivity("y", {"dose": 1}, {"dose": 0}, shift={"do": [-3, -2, -1, 0]})
    found = [point["estimate"] for point in told["points"]]
    assert found == pytest.approx(own.to_frame()["estimate"].tolist(), abs=1e-12)
    assert told["tipping_points"] == pytest.approx(list(own.tipping_points))
    assert told["told"] == own.told


def test_a_table_and_a_picture_are_written(call, there):
    words = [*ASKED, "--strength", "0,1", "--data", "lost.csv", "--interval", "0"]
    ended = call([*words, "--out", "curve.csv", "--plot", "curve.png"])
    assert ended.exit_code == 0, ended.stderr
    assert "if the loss of y follows its own value" in ended.stdout
    assert list(pd.read_csv("curve.csv")["strength"]) == [0, 1]
    with open("curve.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"


def test_those_who_left_follow_a_regime(call, there):
    asked = ["sensitivity", "t", "--on", "y", "--do", "drug=1", "--versus", "drug=0"]
    rng = np.random.default_rng(0)
    drug = rng.integers(0, 2, 100)
    frame = pd.DataFrame({"drug": drug, "y": rng.normal(drug)})
    frame["y"] = frame["y"].mask(rng.random(100) < 0.2)
    frame.to_csv("trial.csv", index=False)
    model = MissCNF("drug -> y", "linear", progress=False).fit(frame)
    model.save("t")
    words = [*asked, "--reference", "MAR,J2R", "--interval", "0", "--data", "trial.csv"]
    ended = call([*words, "--json", "--plot", "regimes.svg"])
    assert ended.exit_code == 0, ended.stderr
    own = model.sensitivity("y", {"drug": 1}, {"drug": 0}, reference=["MAR", "J2R"], interval=None)
    told = [line["estimate"] for line in json.loads(ended.stdout)["regimes"]]
    assert told == pytest.approx(own.table["estimate"].tolist(), abs=1e-12)
    assert abs(told[1]) < abs(told[0])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--strength", "much"], "--strength much: expected numbers"),
        (["--strength", "0:1:0"], "a grid is low:high:step"),
        (["--strength", "1", "--shift", "1"], "give one of --strength, --shift"),
        ([], "give one of --strength, --shift, --ratio and --reference"),
        (["--strength", "1", "--arm", "do"], "--arm is for --shift and --ratio"),
        (["--shift", "1", "--arm", "drug"], "expected do, versus or grid"),
        (["--strength", "1", "--loss", "dose"], "no cell of 'dose' is lost"),
        (["--strength", "1", "--loss", "z"], "--loss"),
        (["--reference", "J2R", "--shift", "1"], "give one of --strength, --shift, --ratio and"),
        (["--reference", "jump"], "reference is a regime of those who left"),
        (["--ratio", "-1"], "ratio is positive numbers"),
        (["--strength", "1", "--plot", "curve.gif"], "a picture is a .png"),
    ],
)
def test_bad_questions_are_refused_in_a_sentence(call, there, words, said):
    ended = call([*ASKED, *words, "--data", "lost.csv"])
    assert ended.exit_code == 2
    assert said in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_the_table_of_the_fit_is_asked_for(call, there):
    ended = call([*ASKED, "--shift", "1"])
    assert ended.exit_code == 2
    assert "--data is needed" in ended.stderr
