"""Work that several processes do comes back in order, also when one of them dies."""

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from misscnf import InputError
from misscnf import workers as of_workers
from misscnf.workers import each, workers


def square(x):
    return x * x


def full(_):
    raise OSError("the disk is full")


def dies_once(x, folder):
    """Kills its own process, unless another was killed before."""
    mark = Path(folder) / "died"
    if x == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x * x


def test_results_are_in_order_whoever_works():
    arguments = [(x,) for x in range(7)]
    alone = each(square, arguments)
    with workers(jobs=2):
        assert each(square, arguments) == alone == [x * x for x in range(7)]


def test_a_worker_that_dies_costs_its_work_and_not_the_answer(tmp_path, caplog):
    with workers(jobs=2), caplog.at_level("WARNING", "misscnf"):
        found = each(dies_once, [(x, str(tmp_path)) for x in range(6)])
    assert found == [x * x for x in range(6)]
    assert (tmp_path / "died").exists()
    assert "A worker died" in caplog.text


@pytest.mark.slow
def test_a_worker_of_a_cluster_that_is_killed_costs_its_work_and_not_the_answer(tmp_path):
    distributed = pytest.importorskip("distributed")
    about = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(n_workers=2, **about) as there,
        workers(cluster=there.scheduler_address),
    ):
        found = each(dies_once, [(x, str(tmp_path)) for x in range(6)])
    assert found == [x * x for x in range(6)]
    assert (tmp_path / "died").exists()


def test_a_cluster_that_is_left_without_workers_is_not_waited_for(monkeypatch, caplog):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(of_workers, "_on_cluster", partial(of_workers._on_cluster, seconds=0.5))
    about = {"processes": False, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(n_workers=1, **about) as there,
        workers(cluster=there.scheduler_address),
        caplog.at_level("WARNING", "misscnf"),
    ):
        assert each(square, [(1,), (2,)]) == [1, 4]
        there.scale(0)
        assert each(square, [(x,) for x in range(6)]) == [x * x for x in range(6)]
        assert each(square, [(1,), (2,)]) == [1, 4]
    assert [record.getMessage() for record in caplog.records if record.name == "misscnf"] == [
        "The cluster has had no worker for 0.5 s: this process does the rest alone."
    ]


def test_what_a_call_raises_on_a_cluster_is_raised():
    distributed = pytest.importorskip("distributed")
    about = {"processes": False, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(n_workers=1, **about) as there,
        workers(cluster=there.scheduler_address),
        pytest.raises(OSError, match="is full"),
    ):
        each(full, [(1,), (2,)])


def test_workers_that_cannot_be_are_refused(monkeypatch):
    with pytest.raises(InputError, match="n_jobs is a number"), workers(jobs=0):
        pass

    def silent(*_, **__):
        raise OSError("nobody answers")

    monkeypatch.setattr("distributed.Client", silent)
    with pytest.raises(InputError, match="no dask scheduler"), workers(cluster="tcp://x:1"):
        pass


def test_a_cluster_without_workers_is_refused():
    distributed = pytest.importorskip("distributed")
    about = {"n_workers": 0, "processes": False, "dashboard_address": None}
    with (
        distributed.LocalCluster(**about) as there,
        pytest.raises(InputError, match="has no workers; start some"),
        workers(cluster=there.scheduler_address, seconds=1.0),
    ):
        pass
