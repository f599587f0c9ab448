"""Jobs that are stopped, that crash, and that meet what an earlier one left."""

import asyncio

import pytest
from studio_here import drawing

from misscnf import InputError
from misscnf.studio.drawing import Drawing
from misscnf.studio.studio import Busy, Studio
from misscnf.studio.workers import Crashed

FITTED = {"seconds": 1.0, "card": "", "forms": {}, "unlikely": []}


class Bench:
    """A worker that answers a fit by a list of what happens."""

    def __init__(self, *events):
        self.events, self.asked, self.stopped = list(events), [], 0

    async def call(self, task, given, told=None):
        self.asked.append(given)
        event = self.events.pop(0)
        if event == "wait":
            await asyncio.sleep(60)
        if isinstance(event, Exception):
            raise event
        return event

    async def stop(self):
        self.stopped += 1


def run(project, tmp_path, bench, then=None):
    """Begins a fit, lets something happen, and returns the job when it has ended."""
    (tmp_path / "a.csv").write_text("a,b\n1,2\n2,3\n")

    async def going():
        project.take_table(tmp_path / "a.csv")
        project.draw(Drawing.read(drawing("a", "b", edges=[("a", "b")])), project.revision)
        studio = Studio(project)
        studio._bench = bench
        studio.start_fit()
        await asyncio.sleep(0)
        if then is not None:
            await then(studio)
        while studio._running is not None:
            await asyncio.sleep(0.01)
        return studio.job

    return asyncio.run(going())


def test_a_fit_is_kept_when_it_is_done(project, tmp_path):
    job = run(project, tmp_path, Bench(FITTED))
    assert job.state == "done"
    assert project.model["folder"] == "models/1"
    assert (project.folder / "graph.dot").read_text().startswith("digraph")


def test_a_crash_is_said_and_nothing_of_it_is_kept(project, tmp_path):
    job = run(project, tmp_path, Bench(Crashed("it was killed")))
    assert job.state == "failed"
    assert "try again" in job.sentence
    assert project.model is None


@pytest.mark.parametrize("left", [True, False])
def test_a_fit_that_is_stopped_says_whether_it_goes_on(project, tmp_path, left):
    bench = Bench("wait")

    async def cancel(studio):
        if left:
            (project.folder / "checkpoint").mkdir()
        await studio.cancel()

    job = run(project, tmp_path, bench, cancel)
    assert bench.stopped == 1
    assert job.state == "stopped"
    assert ("goes on" in job.sentence) == left == project.interrupted


def test_what_another_fit_left_is_removed_and_the_fit_begins_anew(project, tmp_path):
    bench = Bench(InputError("the checkpoint 'x' is of another table; remove it."), FITTED)

    class Leaving(Bench):
        async def call(self, *given):
            (project.folder / "checkpoint").mkdir(exist_ok=True)
            return await bench.call(*given)

    job = run(project, tmp_path, Leaving())
    assert job.state == "done"
    assert len(bench.asked) == 2


def test_there_is_one_job_at_a_time(project, tmp_path):
    async def again(studio):
        with pytest.raises(Busy, match="another job"):
            studio.start_fit()
        await studio.cancel()

    assert run(project, tmp_path, Bench("wait"), again).state == "stopped"
