"""One small table with holes, its graph and a fitted model, copied for each test."""

import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from misscnf import MissCNF
from misscnf.cli.app import app

GRAPH = "digraph { age -> t; age -> y; sex -> y; t -> y; dose -> y; y -> stage }"


def make_table(rows=200):
    rng = np.random.default_rng(0)
    age = rng.normal(50.0, 10.0, rows).round(1)
    t = (rng.random(rows) < 1.0 / (1.0 + np.exp(-(age - 50.0) / 10.0))).astype(int)
    dose = np.exp(rng.normal(0.0, 0.3, rows)).round(3)
    y = (2.0 * t + 0.1 * age + dose + rng.normal(size=rows)).round(3)
    table = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(rows)],
            "age": age,
            "sex": rng.choice(["f", "m"], rows),
            "t": t,
            "dose": dose,
            "y": y,
            "stage": np.where(y + rng.normal(size=rows) > 7.5, "late", "early"),
        }
    )
    for column in ("age", "sex", "t", "y"):
        table[column] = table[column].where(rng.random(rows) > 0.2)
    return table


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    table = make_table()
    table.to_csv(folder / "data.csv", index=False)
    (folder / "graph.dot").write_text(GRAPH)
    MissCNF(GRAPH, preset="linear", progress=False).fit(folder / "data.csv").save(folder / "model")
    return folder


@pytest.fixture
def here(world, tmp_path, monkeypatch):
    """A copy of the world, as the working directory."""
    folder = tmp_path / "here"
    shutil.copytree(world, folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def call(here):
    def run(words, given=None):
        line = words.split() if isinstance(words, str) else list(map(str, words))
        return CliRunner().invoke(
            app, line, input=given, catch_exceptions=False, terminal_width=100
        )

    return run
