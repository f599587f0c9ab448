r"""One studio: its project, its workers, the job under way, and the pages that listen.

Quick questions (the table, its kinds, the check while one draws) go to a worker that keeps the
table open. A job (a fit, an answer, a report) takes long; there is one at a time, in a worker of
its own, which is killed when the job is cancelled. What a job found is kept in the project before
any page hears of it, so that it is not lost when no page is open.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from misscnf.data.files import write_atomically
from misscnf.errors import InputError
from misscnf.studio.drawing import Drawing, write_graph
from misscnf.studio.project import Project
from misscnf.studio.questions import Question
from misscnf.studio.recipe import kinds_file, python_code, shell_code
from misscnf.studio.workers import Crashed, Worker

__all__ = ["Studio", "Busy", "Job"]


class Busy(InputError):
    """There is one job at a time."""


@dataclass
class Job:
    """Work that takes long, as the page shows it."""

    task: str
    state: str = "running"
    """running, done, stopped, refused or failed."""
    stage: str = ""
    done: int = 0
    total: int = 0
    note: str = ""
    sentence: str = ""
    began: float = 0.0
    stage_began: float = 0.0

    def told(self, progress: dict[str, Any]) -> None:
        """Takes what a worker says of its progress."""
        if progress["stage"] != self.stage:
            self.stage_began = time.monotonic()
        self.stage, self.note = progress["stage"], progress["note"]
        self.done, self.total = progress["done"], progress["total"]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, with the seconds that went by and those that are left."""
        now = time.monotonic()
        elapsed, share = now - self.stage_began, self.done / self.total if self.total else 0.0
        left = elapsed * (1.0 - share) / share if 0.0 < share <= 1.0 and elapsed > 1.0 else None
        found = asdict(self)
        del found["began"], found["stage_began"]
        return {**found, "seconds": round(now - self.began, 1), "left": left}


class Studio:
    """What the server serves.

    Arguments:
        project: The open project.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.job: Job | None = None
        self._desk, self._bench = Worker(), Worker()
        self._running: asyncio.Task[None] | None = None
        self._listeners: set[asyncio.Queue[dict[str, Any]]] = set()
        self._described: tuple[str, Any] | None = None

    # --------------------------------------------------------------------- what is quick

    @property
    def table(self) -> str:
        """The path of the table."""
        if self.project.table is None:
            raise InputError("there is no table yet; drop one on the page.")
        return str(self.project.table["path"])

    async def quick(self, task: str, **given: Any) -> Any:  # noqa: ANN401 - of JSON
        """Returns the answer of the worker that keeps the table open."""
        return await self._desk.call(task, given)

    async def describe(self) -> dict[str, Any]:
        """Returns what the page shows of the table, made once."""
        path = self.table
        kept, known = self._described, dict(self.project.table or {})
        if kept is None or kept[0] != path:
            kept = self._described = path, await self.quick("table", path=path)
        return {**kept[1], **known}

    async def warm(self) -> None:
        """Reads the table, and then imports what the first check needs."""
        with suppress(InputError, Crashed):
            if self.project.table is not None:
                await self.describe()
            await self.quick("warm")

    async def open_table(self, path: Path) -> None:
        """Takes a table, if it can be read; else all stays as it was."""
        project = self.project
        found = await self.quick("table", path=str(path))
        if self.project is not project:
            raise Busy("another project was opened meanwhile; drop the table again.")
        if self._running is not None:
            raise Busy("a job is under way; stop it before another table is opened.")
        self._described = str(path.resolve()), found
        self.project.take_table(path)
        self.tell_project()

    async def open_project(self, name: str, *, new: bool) -> None:
        """Opens another project beside the one that is open, or begins one there."""
        if self._running is not None:
            raise Busy("a job is under way; stop it before another project is opened.")
        before, opened = self.project, self.project.beside(name, new=new)
        # A page that still shows the project before must not draw into this one.
        opened.revision = max(opened.revision, before.revision) + 1
        before.close()
        self.project, self.job, self._described = opened, None, None
        self.tell({"what": "opened"})

    def draw(self, drawing: Drawing, revision: int) -> int:
        """Takes a new drawing, and returns its revision."""
        self.project.draw(drawing, revision)
        self.tell({"what": "drawing", "revision": self.project.revision})
        return self.project.revision

    # --------------------------------------------------------------------- what takes long

    def start_fit(self) -> None:
        """Begins a fit to what is drawn, or goes on with one that was cancelled."""
        drawing, path, out = self.project.drawing, self.table, self.project.next_model()
        folder = self.project.folder
        write_atomically(folder / "graph.dot", write_graph(drawing, "dot").encode())
        write_atomically(folder / "kinds.json", kinds_file(drawing).encode())
        given = {"path": path, "drawing": drawing.to_dict(), "out": str(out)}

        async def fit(job: Job) -> None:
            kept = folder / "checkpoint"
            try:
                found = await self._ask("fit", job, **given, checkpoint=str(kept))
            except InputError as error:
                if not kept.exists() or "checkpoint" not in str(error):
                    raise
                self.project.drop_checkpoint()  # of another drawing
                found = await self._ask("fit", job, **given, checkpoint=str(kept))
            model = {"folder": str(out.relative_to(folder)), "drawing": drawing.to_dict(), **found}
            self.project.take_model(model)

        self._start("fit", fit)

    def start_question(self, question: Question) -> None:
        """Begins to answer a question."""
        path, model = self.table, self._model()

        async def ask(job: Job) -> None:
            given = {"path": path, "model": model, "question": question.to_dict()}
            found = await self._ask("ask", job, **given)
            number = 1 + max((one["number"] for one in self.project.answers), default=0)
            answer = {"number": number, "question": question.to_dict(), **found}
            self.project.answers = [*self.project.answers, answer]
            self.project.save()

        self._start("ask", ask)

    def start_report(self) -> None:
        """Begins to write the page about the model."""
        path, model, effect = self.table, self._model(), self.project.drawing.asked
        out = self.project.folder / "report.html"

        async def report(job: Job) -> None:
            pair = None if effect is None else list(effect)
            given = {"path": path, "model": model, "effect": pair, "out": str(out)}
            self.project.report = await self._ask("report", job, **given)
            self.project.save()

        self._start("report", report)

    def forget_answer(self, number: int) -> None:
        """Takes an answer off the page."""
        self.project.answers = [one for one in self.project.answers if one["number"] != number]
        self.project.save()
        self.tell_project()

    def _model(self) -> str:
        if self.project.model is None:
            raise InputError("there is no fitted model yet; fit one first.")
        return str(self.project.folder / self.project.model["folder"])

    def _start(self, task: str, work: Callable[[Job], Coroutine[Any, Any, None]]) -> None:
        if self._running is not None:
            raise Busy("another job is under way; wait for it, or stop it.")
        now = time.monotonic()
        self.job = Job(task, began=now, stage_began=now)
        self._running = asyncio.create_task(self._watched(self.job, work))
        self.tell_job()

    async def _watched(self, job: Job, work: Callable[[Job], Coroutine[Any, Any, None]]) -> None:
        try:
            await work(job)
            job.state = "done"
        except asyncio.CancelledError:
            await self._bench.stop()  # before anybody hears that it has stopped
            job.state, job.sentence = "stopped", "stopped; nothing of it was kept."
            if job.task == "fit" and self._goes_on():
                job.sentence = "stopped; the same fit goes on from where it was."
        except Crashed as error:
            job.state = "failed"
            self._goes_on()
            job.sentence = f"it ended before it was done ({error}); the page goes on, try again."
        except InputError as error:
            job.state, job.sentence = "refused", str(error)
        except OSError as error:
            job.state, job.sentence = "failed", f"a file could not be written: {error.strerror}."
        finally:
            self._running = None
            self.tell_job()
            self.tell_project()

    def _goes_on(self) -> bool:
        """Says whether a fit has left something to go on from, and notes it."""
        self.project.interrupted = (self.project.folder / "checkpoint").exists()
        self.project.save()
        return self.project.interrupted

    async def _ask(self, task: str, job: Job, **given: Any) -> Any:  # noqa: ANN401 - of JSON
        def told(progress: dict[str, Any]) -> None:
            job.told(progress)
            self.tell_job()

        return await self._bench.call(task, given, told)

    async def cancel(self) -> None:
        """Stops the job under way; its process is killed."""
        running = self._running
        if running is None:
            return
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def close(self) -> None:
        """Ends everything."""
        self.tell({"what": "closed"})
        await self.cancel()
        await asyncio.gather(self._desk.stop(), self._bench.stop())
        self.project.close()

    # --------------------------------------------------------------------- code

    def code(self) -> dict[str, str]:
        """Returns the code that does the same, in Python and for the command line."""
        project, table = self.project, self.table
        drawing = project.drawing
        if project.model is not None:
            drawing = Drawing.read(
                {**project.model["drawing"], "effect": drawing.effect and [*drawing.effect]}
            )
        shell = shell_code(table, drawing, project.answers, report=project.report is not None)
        return {"python": python_code(table, drawing, project.answers), "shell": shell}

    # --------------------------------------------------------------------- who listens

    def listen(self) -> asyncio.Queue[dict[str, Any]]:
        """Returns a queue of what happens, for one page."""
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(maxsize=1000)
        self._listeners.add(queue)
        return queue

    def leave(self, queue: asyncio.Queue[dict[str, Any]]) -> None:
        """Forgets a page that was closed."""
        self._listeners.discard(queue)

    def tell(self, message: dict[str, Any]) -> None:
        """Tells every page."""
        for queue in self._listeners:
            with suppress(asyncio.QueueFull):  # a page that sleeps asks anew when it wakes
                queue.put_nowait(message)

    def tell_job(self) -> None:
        """Tells every page how the job is."""
        self.tell({"what": "job", "job": None if self.job is None else self.job.to_dict()})

    def tell_project(self) -> None:
        """Tells every page that the project has changed."""
        self.tell({"what": "project", "revision": self.project.revision})
