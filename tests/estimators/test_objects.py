"""A fitted model as an object: copied, pickled, sent to workers, asked by threads at once."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from misscnf import MissCNF

ASKED = {"do": {"t": 1}, "versus": {"t": 0}, "interval": 0.9, "replicates": 5, "draws": 500}


def make_table(rows=200):
    rng = np.random.default_rng(0)
    x = rng.normal(size=rows)
    t = (rng.random(rows) < 1 / (1 + np.exp(-x))).astype(float)
    df = pd.DataFrame({"x": x, "t": t, "y": t + 2 * np.sin(2 * x) + rng.normal(size=rows)})
    return df.mask(rng.random(df.shape) < 0.2)


def make_model():
    return MissCNF("x -> t; x -> y; t -> y", preset="linear", progress=False).fit(make_table())


def ask(model, seed=0):
    """Everything that a model keeps from one question to the next is asked for."""
    effects = [
        model.effect("y", **ASKED, seed=seed, population=population, where="x > -1")
        for population in ("model", "rows")
    ]
    drawn = model.sample(3, seed=seed), model.impute(make_table(), seed=seed)
    numbers = [frame.to_numpy().tolist() for frame in drawn]
    return [(effect.estimate, effect.interval) for effect in effects], numbers


@pytest.fixture(scope="module")
def model():
    model = make_model()
    ask(model)
    return model


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_a_copy_of_a_model_that_was_asked_answers_the_same(model, copied):
    other = copied(model)
    assert ask(other) == ask(model)
    assert ask(other, seed=1) == ask(model, seed=1)


def test_a_clone_is_not_fitted_and_fits_to_the_same(model):
    other = clone(model)
    assert not hasattr(other, "model_")
    assert ask(other.fit(make_table())) == ask(model)


@pytest.mark.slow
def test_workers_answer_as_the_model_does(model):
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(ask)(model, seed) for seed in (0, 1))
    assert found == [ask(model, 0), ask(model, 1)]


def test_threads_get_the_answers_that_one_gets():
    """The first questions, which make replicates and completions, come all at once."""
    alone, seeds, threads = make_model(), [0, 1, 2] * 3, torch.get_num_threads()
    wanted = {seed: ask(alone, seed) for seed in set(seeds)}
    together = make_model()
    with ThreadPoolExecutor(len(seeds)) as pool:
        found = list(pool.map(lambda seed: ask(together, seed), seeds))
    assert found == [wanted[seed] for seed in seeds]
    assert torch.get_num_threads() == threads
