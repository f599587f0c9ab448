"""A fit that reads its rows from disk is the fit in memory."""

import logging
import signal

import numpy as np
import pandas as pd
import pytest
import torch

from misscnf import InputError, MissCNF
from misscnf.data.stored_rows import StoredRows
from misscnf.data.streams import TableStream
from misscnf.fitting import many_rows
from misscnf.fitting.solve import local_patterns
from misscnf.mechanisms import Shape

GRAPH = "a -> b; a -> c; b -> c"
ON_DISK = {"memory": "1kB"}
SAMPLE = {"streaming.sample_rows": 600, "streaming.information_rows": 600}


def table(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    b = 0.7 * a + rng.normal(size=rows)
    found = pd.DataFrame({"a": a, "b": b, "c": b - 0.4 * a + rng.normal(size=rows)})
    return found.mask((rng.random(found.shape) < 0.25) & [False, True, True])


def mixed(rows=3000):
    found = table(rows)
    found["b"] = found["b"].gt(0).where(found["b"].notna()).map({True: "yes", False: "no"})
    return found


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    table().to_parquet(folder / "lines.parquet")
    mixed().to_parquet(folder / "mixed.parquet")
    return folder


def coefficients(model):
    return model.summary()["coefficient"].dropna().to_numpy()


@pytest.fixture(scope="module")
def of_lines(paths):
    def fit(**how):
        return MissCNF(GRAPH, "linear", progress=False).fit(paths / "lines.parquet", **how)

    return fit(), fit(**ON_DISK)


def test_lines_are_the_same_wherever_rows_lie(of_lines):
    one, other = of_lines
    np.testing.assert_allclose(coefficients(other), coefficients(one), rtol=0, atol=1e-6)
    assert other.schema_ == one.schema_
    assert list(other.feature_names_in_) == list(one.feature_names_in_)


def test_lines_have_the_same_bits_on_any_number_of_threads(paths, monkeypatch):
    """Twelve batches, columns and sums of which are worked on side by side."""
    frames, batches = TableStream.frames, StoredRows.batches
    monkeypatch.setattr(TableStream, "frames", lambda self, names: frames(self, names, 250))
    monkeypatch.setattr(StoredRows, "batches", lambda self, size=0: batches(self, 250))
    monkeypatch.setattr(local_patterns, "ROWS_AT_ONCE", 250)
    found, before = [], torch.get_num_threads()
    for count in (1, 2):
        torch.set_num_threads(count)
        model = MissCNF(GRAPH, "linear", progress=False)
        found.append(coefficients(model.fit(paths / "lines.parquet", **ON_DISK)))
    torch.set_num_threads(before)
    np.testing.assert_array_equal(*found)


def errors(model):
    """Standard errors of all parameters."""
    found, _ = model._replicates(0.5, None, 5)
    return found.information.covariance().diagonal().sqrt().numpy()


def test_standard_errors_are_those_of_all_rows(paths, of_lines):
    """600 rows say how large those of 3,000 are, to three percent each; four of these are let."""
    few = MissCNF(GRAPH, "linear", progress=False, settings=SAMPLE)
    few.fit(paths / "lines.parquet", **ON_DISK)
    np.testing.assert_allclose(errors(few), errors(of_lines[0]), rtol=0.12)


def test_a_saved_model_knows_how_many_rows_it_is_of(of_lines, tmp_path):
    of_lines[1].save(tmp_path / "model")
    loaded = MissCNF.load(tmp_path / "model")
    assert loaded._stands_for == 3000
    assert (
        loaded.effect("c", do={"b": 1}).estimate == of_lines[1].effect("c", do={"b": 1}).estimate
    )


def test_levels_move_on_to_all_rows(paths, caplog):
    """From a sample of a fifth, lines and logits come to the maximum for all rows."""
    to_the_end = {**SAMPLE, "streaming.tolerance": 1e-7}
    mixed_rows, few = paths / "mixed.parquet", {"progress": False, "settings": to_the_end}
    with caplog.at_level(logging.INFO, "misscnf"):
        other = MissCNF(GRAPH, "linear", **few).fit(mixed_rows, **ON_DISK)
    one = MissCNF(GRAPH, "linear", progress=False).fit(mixed_rows)
    assert "The forms are those of 600 rows by chance; now all 3000 rows move them" in caplog.text
    assert set(other.history_["stage"]) == {"all 3000 rows"}
    sample = MissCNF(GRAPH, "linear", progress=False).fit(mixed().iloc[:600])
    np.testing.assert_allclose(coefficients(other), coefficients(one), rtol=0, atol=1e-5)
    assert np.abs(coefficients(sample) - coefficients(one)).max() > 0.01


@pytest.fixture
def in_parts(paths, monkeypatch):
    """Fits lines and logits in passes of twelve parts; `how` says who works on them."""
    monkeypatch.setattr(many_rows, "ROWS_AT_ONCE", 250)

    def fit(*, progress=False, **how):
        model = MissCNF(GRAPH, "linear", progress=progress, settings=SAMPLE)
        return model.fit(paths / "mixed.parquet", **ON_DISK, **how)

    return fit


def test_a_cluster_finds_the_bits_of_one_process(in_parts):
    distributed = pytest.importorskip("distributed")
    one = in_parts()
    about = {"processes": False, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(n_workers=2, **about) as there:
        other = in_parts(cluster=there.scheduler_address)
        done = sum(worker.state.executed_count for worker in there.workers.values())
    assert done == 12 * len(other.history_)
    np.testing.assert_array_equal(coefficients(other), coefficients(one))


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_a_fit_its_part_and_not_the_answer(in_parts, caplog):
    psutil, killed = pytest.importorskip("psutil"), []

    def kill(done, total, note, stage):
        if stage == "pass 1 over all rows" and done and not killed:
            there = psutil.Process().children(recursive=True)
            killed.append(next(one for one in there if "popen_loky" in " ".join(one.cmdline())))
            killed[0].send_signal(signal.SIGKILL)

    one, other = in_parts(), in_parts(progress=kill, n_jobs=2)
    assert "A worker died" in caplog.text
    np.testing.assert_array_equal(coefficients(other), coefficients(one))


def test_passes_say_how_many_rows_are_done(in_parts):
    told = []
    in_parts(progress=lambda done, total, note, stage: told.append((done, total, stage)))
    assert [step for step in told if step[2] == "reading rows"] == [(3000, 3000, "reading rows")]
    first = [done for done, _, stage in told if stage == "pass 1 over all rows"]
    assert first == list(range(0, 3001, 250))


def test_networks_and_files_that_fit_are_as_they_were(paths):
    small = MissCNF(GRAPH, "linear", progress=False).fit(paths / "lines.parquet", memory="1GB")
    assert small._stands_for is None
    assert len(small._table) == 3000


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"memory": "plenty"}, "memory is a size such as '4GB'"),
        ({"memory": "1kB", "validation": table(10)}, "validation is a share then"),
        ({"memory": "1kB", "n_jobs": 0}, "n_jobs is a number of processes"),
    ],
)
def test_what_cannot_be_is_refused(paths, how, said):
    with pytest.raises(InputError, match=said):
        MissCNF(GRAPH, "linear", progress=False).fit(paths / "lines.parquet", **how)


def test_tables_over_time_are_read_in_memory(paths):
    model = MissCNF("b[t-1] -> b[t]", "linear", id="a", time="c", progress=False)
    with pytest.raises(InputError, match="tables over time or with ties are read into memory"):
        model.fit(paths / "lines.parquet", **ON_DISK)


@pytest.mark.slow
def test_networks_are_trained_and_judged_as_those_of_all_rows(paths, tmp_path):
    """Of a sample of a fifth, an interval of as many rows would be √5 times as wide.

    The seed is fixed; of other seeds one in twenty would not hold the truth.
    """
    settings = {
        **SAMPLE,
        "selection.compare": False,
        "training.epochs": 4,
        "shape": Shape(hidden=(8,)),
        "streaming.shard_rows": 500,
        "streaming.passes": 2,
        "replicates.networks": 8,
    }
    model = MissCNF(GRAPH, kinds="continuous", progress=False, settings=settings)
    model.fit(paths / "lines.parquet", **ON_DISK)
    assert "networks, all 3000 rows" in set(model.history_["stage"])
    assert {"networks, all rows", "all rows"} <= model.timings_.keys()
    ask = {"do": {"a": 1.0}, "versus": {"a": 0.0}, "interval": 0.95}
    all_rows = model.effect("c", **ask)
    low, high = all_rows.interval
    assert low < 0.3 < high  # 0.7 − 0.4
    model.save(tmp_path / "model")
    again = MissCNF.load(tmp_path / "model")
    assert again.effect("c", **ask, data=paths / "lines.parquet").interval == all_rows.interval
    model._stands_for = None
    model._cache.replicates.clear()
    low_of_sample, high_of_sample = model.effect("c", **ask).interval
    assert 1.2 * (high - low) < high_of_sample - low_of_sample
