"""Saved models: the same answers back, and nothing altered or foreign gets in."""

import json

import numpy as np
import pandas as pd
import pytest

from misscnf import MissCNF, ModelFileError
from misscnf.errors import InputError
from misscnf.mechanisms import Shape

SHAPES = {
    "linear": ("linear", {}),
    "network": ("auto", {"epochs": 2, "shape": Shape(hidden=(8,)), "selection.compare": False}),
    "spline": (
        "auto",
        {"epochs": 2, "shape": Shape("spline", (8,), (8,)), "selection.compare": False},
    ),
    "paper": ("paper", {"epochs": 2}),
}


def table():
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    df = pd.DataFrame({"a": a, "b": np.sin(a) + rng.normal(size=200)})
    return df.mask(rng.random(df.shape) < 0.3)


def fitted(name):
    preset, settings = SHAPES[name]
    return MissCNF("a -> b", preset=preset, settings=settings, progress=False).fit(table())


@pytest.mark.parametrize("name", SHAPES)
def test_a_loaded_model_answers_as_the_saved_one(name, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "model")
    loaded = MissCNF.load(tmp_path / "model")
    df = table()
    pd.testing.assert_series_equal(loaded.log_prob(df), model.log_prob(df), check_exact=True)
    pd.testing.assert_frame_equal(loaded.sample(9), model.sample(9), check_exact=True)
    pd.testing.assert_frame_equal(loaded.history_, model.history_)
    assert loaded.settings_ == model.settings_
    assert loaded.graph_ == model.graph_
    assert {path.name for path in (tmp_path / "model").iterdir()} == {
        "model.json",
        "parameters.safetensors",
    }


def test_what_an_epoch_did_not_measure_is_null_in_the_file(tmp_path):
    """NaN would be no JSON."""
    model = fitted("network")
    model.history_.loc[0, "train"] = np.nan
    model.save(tmp_path / "model")
    text = (tmp_path / "model" / "model.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["about"]["history"]["train"][0] is None
    loaded = MissCNF.load(tmp_path / "model")
    pd.testing.assert_frame_equal(loaded.history_, model.history_)


def _edit(folder, change):
    path = folder / "model.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


DAMAGE = {
    "missing folder": (lambda f: f.rename(f.parent / "elsewhere"), "cannot be read"),
    "no parameters": (lambda f: (f / "parameters.safetensors").unlink(), "cannot be read"),
    "truncated parameters": (
        lambda f: (f / "parameters.safetensors").write_bytes(
            (f / "parameters.safetensors").read_bytes()[:-4]
        ),
        "not the file",
    ),
    "one bit": (
        lambda f: (f / "parameters.safetensors").write_bytes(
            (f / "parameters.safetensors").read_bytes()[:-1] + b"\x01"
        ),
        "not the file",
    ),
    "edited units": (
        lambda f: _edit(f, lambda c: c["about"].update(seed=99)),
        "altered since it was saved",
    ),
    "foreign JSON": (lambda f: (f / "model.json").write_text("{}"), "not a misscnf model"),
    "a list": (lambda f: (f / "model.json").write_text("[1]"), "not a misscnf model"),
    "not JSON": (lambda f: (f / "model.json").write_bytes(b"\x80\x04."), "as JSON"),
    "newer version": (lambda f: _edit(f, lambda c: c.update(version=99)), "format 99"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_an_altered_or_foreign_model_is_refused_with_one_sentence(name, tmp_path):
    fitted("linear").save(tmp_path / "model")
    damage, fragment = DAMAGE[name]
    damage(tmp_path / "model")
    with pytest.raises(ModelFileError, match=fragment) as caught:
        MissCNF.load(tmp_path / "model")
    assert "\n" not in str(caught.value)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        fitted("linear").save(tmp_path / "file" / "model")


def test_saving_over_a_model_replaces_it_whole(tmp_path):
    fitted("linear").save(tmp_path)
    model = fitted("network")
    model.save(tmp_path)
    assert MissCNF.load(tmp_path).chosen_ == "network"


def test_a_saved_model_can_be_read_by_whom_new_files_can(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("")
    fitted("linear").save(tmp_path / "model")
    for name in ("model.json", "parameters.safetensors"):
        assert (tmp_path / "model" / name).stat().st_mode == plain.stat().st_mode
