"""Settings say what they are, are changed by name, and travel with a saved model."""

import ast
import dataclasses
import inspect
import itertools
import json

import numpy as np
import pandas as pd
import pytest

from misscnf import InputError, MissCNF, options
from misscnf.fitting.settings import PRESETS, Settings, preset_settings


def groups(settings, prefix=""):
    """Yields every dataclass of the settings with the prefix of its names."""
    yield prefix, type(settings)
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            yield from groups(value, f"{prefix}{field.name}.")


def documented(cls):
    """The fields of a class that a docstring follows, as its source has it."""
    body = ast.parse(inspect.getsource(cls).lstrip()).body[0].body
    return {
        first.target.id
        for first, then in itertools.pairwise(body)
        if isinstance(first, ast.AnnAssign)
        and isinstance(then, ast.Expr)
        and isinstance(then.value, ast.Constant)
        and isinstance(then.value.value, str)
    }


def test_every_setting_says_what_it_is():
    said = {f"{prefix}{name}" for prefix, cls in groups(Settings()) for name in documented(cls)}
    names = options.flatten(Settings())
    assert len(names) > 80
    assert [name for name in names if name not in said] == []


@pytest.mark.parametrize("preset", PRESETS)
def test_settings_survive_json(preset):
    settings = PRESETS[preset]
    assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("selection.zz", "selection.z"),
        ("epoch", "training.epochs"),
        ("curves.length_scales", "curves.length_scale"),
        ("hiden", "shape.hidden"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(wrong, near):
    with pytest.raises(InputError, match=f"there is no setting {wrong!r}") as caught:
        preset_settings("auto", {wrong: 1})
    assert near in str(caught.value)


def test_a_saved_model_says_its_settings_fully(tmp_path):
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    changes = {"selection.z": 2.25, "curves.worth": 7.0, "solving.unseen_slope": 0.2}
    model = MissCNF("a -> b", "linear", settings=changes, progress=False).fit(df)
    model.save(tmp_path / "m")
    content = json.loads((tmp_path / "m" / "model.json").read_text())["about"]["settings"]
    assert (
        options.flatten(options.from_dict(Settings, content)).keys()
        == options.flatten(Settings()).keys()
    )
    assert content["selection"]["z"] == 2.25
    for name in options.flatten(Settings()):  # written out, also where it is the default
        at = content
        for part in name.split("."):
            at = at[part]
    loaded = MissCNF.load(tmp_path / "m").settings_
    assert loaded == model.settings_
    assert loaded.curves.worth == 7.0
