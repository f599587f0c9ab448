"""Replicates on disk: the same intervals back, and none from another fit or a damaged file."""

import numpy as np
import pandas as pd
import pytest

from misscnf import MissCNF
from misscnf.mechanisms import Shape

PRESETS = {
    "lines": ("linear", {}, None),
    "networks": (
        "auto",
        {"epochs": 2, "shape": Shape("spline", (8,), (8,)), "selection.compare": False},
        5,
    ),
}


def table(seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=150)
    df = pd.DataFrame({"a": a, "b": np.sin(a) + rng.normal(size=150), "k": rng.poisson(2, 150)})
    return df.mask(rng.random(df.shape) < 0.2)


def fitted(name="lines", seed=0):
    preset, settings, count = PRESETS[name]
    model = MissCNF("a -> b -> k", preset, settings=settings, seed=seed, progress=False)
    return model.fit(table()), count


def ask(model, count, **more):
    given = {"interval": 0.9, "replicates": count, "draws": 300, **more}
    return model.effect("k", {"a": 1.0}, {"a": 0.0}, **given).interval


def no_replicates(monkeypatch):
    monkeypatch.setattr(
        "misscnf.queries.asking.replicate_fit", lambda *a, **k: pytest.fail("replicates were made")
    )


@pytest.mark.parametrize("name", PRESETS)
def test_a_loaded_model_has_the_replicates_of_the_saved_one(name, tmp_path, monkeypatch):
    model, count = fitted(name)
    found = ask(model, count)
    model.save(tmp_path)
    no_replicates(monkeypatch)
    loaded = MissCNF.load(tmp_path)
    assert ask(loaded, count) == found
    assert ask(loaded, count, data=table()) == found
    again = tmp_path / "again"
    loaded.save(again)
    assert ask(MissCNF.load(again), count) == found
    name = "replicates.safetensors"
    assert (again / name).read_bytes() == (tmp_path / name).read_bytes()


def test_another_table_or_number_has_replicates_of_its_own(tmp_path):
    model, _ = fitted()
    found = ask(model, None)
    model.save(tmp_path)
    assert ask(MissCNF.load(tmp_path), None, data=table(1)) != found
    assert ask(MissCNF.load(tmp_path), 7, data=table()) != found


def test_replicates_of_another_fit_are_left_aside(tmp_path, caplog):
    model, _ = fitted()
    ask(model, None)
    model.save(tmp_path)
    kept = (tmp_path / "replicates.safetensors").read_bytes()
    fitted(seed=1)[0].save(tmp_path)
    assert not (tmp_path / "replicates.safetensors").exists()
    (tmp_path / "replicates.safetensors").write_bytes(kept)
    caplog.set_level("INFO", "misscnf")
    assert not MissCNF.load(tmp_path)._cache.replicates
    assert "is of another fit" in caplog.text


@pytest.mark.parametrize("damage", ["cut", "bit", "text"])
def test_a_damaged_file_is_left_aside(damage, tmp_path, caplog):
    model, _ = fitted()
    found = ask(model, None)
    model.save(tmp_path)
    path = tmp_path / "replicates.safetensors"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes({"cut": data[:-9], "bit": data, "text": b"nothing of the kind"}[damage])
    loaded = MissCNF.load(tmp_path)
    assert "is left aside" in caplog.text
    assert ask(loaded, None, data=table()) == found
