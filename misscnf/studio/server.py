r"""The server of the page: addresses, and what each passes on.

| address | what it does |
|---|---|
| `GET /`, `/app.js`, `/style.css` | the page |
| `GET /api/project` | all that the page shows, and the job under way |
| `PUT /api/drawing` | takes a drawing; 409 where another tab was quicker |
| `GET /api/table`, `PUT /api/table?name=…` | the table; a new one, as its bytes |
| `POST /api/kinds`, `/api/check`, `/api/read`, `/api/write` | quick questions |
| `POST /api/fit`, `/api/ask`, `/api/report`, `/api/forget`, `/api/cancel` | jobs |
| `POST /api/example` | the guided example |
| `GET /api/projects`, `POST /api/open` | the projects beside this one; another of them |
| `GET /api/code`, `/report.html` | what comes out |
| `GET /api/events` | what happens, as it happens |

What is refused has a status and a sentence; nothing is written then.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from misscnf.errors import InputError
from misscnf.studio.drawing import Drawing
from misscnf.studio.example import example_drawing, write_example
from misscnf.studio.guard import Guard, refused
from misscnf.studio.project import Conflict
from misscnf.studio.questions import Question
from misscnf.studio.studio import Busy, Studio
from misscnf.studio.workers import Crashed

__all__ = ["make_app"]


def make_app(
    studio: Studio, token: str, port: int, *, largest: int = 10**9, longest: int = 4 * 2**20
) -> ASGIApp:
    """Returns the guarded application.

    Arguments:
        studio: What is served.
        token: The secret in the address.
        port: Where it will listen.
        largest: Bytes of a table that may be dropped.
        longest: Bytes of any other request.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        warm = asyncio.create_task(studio.warm())
        yield
        warm.cancel()
        await studio.close()

    desk = _Desk(studio, largest, longest)
    posts = ("kinds", "check", "read", "write", "fit", "ask", "report", "forget", "cancel", "open")
    routes = [
        Route("/", _static("index.html", "text/html; charset=utf-8")),
        Route("/app.js", _static("app.js", "text/javascript; charset=utf-8")),
        Route("/style.css", _static("style.css", "text/css; charset=utf-8")),
        Route("/api/project", _answered(desk.project)),
        Route("/api/drawing", _answered(desk.draw), methods=["PUT"]),
        Route("/api/table", _answered(desk.table)),
        Route("/api/table", _answered(desk.upload), methods=["PUT"]),
        Route("/api/example", _answered(desk.example), methods=["POST"]),
        Route("/api/projects", _answered(desk.projects)),
        Route("/api/code", _answered(desk.code)),
        Route("/api/events", desk.events),
        Route("/report.html", _answered(desk.page)),
    ]
    routes += [
        Route(f"/api/{name}", _answered(getattr(desk, name)), methods=["POST"]) for name in posts
    ]
    return Guard(Starlette(routes=routes, lifespan=lifespan), token, port)


Endpoint = Callable[[Request], Awaitable[Response]]


def _static(name: str, kind: str) -> Endpoint:
    content = files("misscnf.studio").joinpath("static", name).read_bytes()

    async def serve(_: Request) -> Response:
        return Response(content, headers={"content-type": kind})

    return serve


def _answered(handle: Callable[[Request], Awaitable[object]]) -> Endpoint:
    """Turns what is refused into a status and a sentence."""

    async def answer(request: Request) -> Response:
        try:
            found = await handle(request)
        except _Refused as error:
            return refused(str(error), error.status)
        except (Conflict, Busy) as error:
            return refused(str(error), 409)
        except InputError as error:
            return refused(str(error), 422)
        except Crashed as error:
            return refused(f"the work ended before it was done ({error}); try again.", 500)
        except OSError as error:
            return refused(f"a file could not be written or read: {error.strerror}.", 507)
        return found if isinstance(found, Response) else JSONResponse(found)

    return answer


class _Refused(Exception):
    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


class _Desk:
    """The addresses."""

    def __init__(self, studio: Studio, largest: int, longest: int) -> None:
        self.studio, self.largest, self.longest = studio, largest, longest

    async def project(self, _: Request) -> object:
        job = self.studio.job
        shown = self.studio.project.to_dict()
        folder = str(self.studio.project.folder)
        return {**shown, "job": None if job is None else job.to_dict(), "folder": folder}

    async def projects(self, _: Request) -> object:
        return self.studio.project.others

    async def open(self, request: Request) -> object:
        given = await self._json(request, "name", "new")
        if not isinstance(given["name"], str) or not isinstance(given["new"], bool):
            raise InputError("a project is opened by its name; new is true or false.")
        await self.studio.open_project(given["name"], new=given["new"])
        return {}

    async def draw(self, request: Request) -> object:
        given = await self._json(request, "drawing", "revision")
        revision = given["revision"]
        if isinstance(revision, bool) or not isinstance(revision, int):
            raise InputError("revision is a whole number; reload the page.")
        return {"revision": self.studio.draw(Drawing.read(given["drawing"]), revision)}

    async def table(self, _: Request) -> object:
        return await self.studio.describe()

    async def kinds(self, request: Request) -> object:
        given = await self._json(request, "kinds")
        kinds = Drawing.read({"kinds": given["kinds"]}).kinds
        return await self.studio.quick("kinds", path=self.studio.table, kinds=kinds)

    async def check(self, request: Request) -> object:
        given = await self._json(request, "drawing", "rows", "quick")
        drawing, rows = Drawing.read(given["drawing"]).to_dict(), given["rows"]
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 2):
            raise InputError("rows is a whole number from 2, or null for all.")
        if not isinstance(given["quick"], bool):
            raise InputError("quick is true or false.")
        asked = {"drawing": drawing, "rows": rows, "quick": given["quick"]}
        return await self.studio.quick("check", path=self.studio.table, **asked)

    async def read(self, request: Request) -> object:
        text = (await self._json(request, "text"))["text"]
        if not isinstance(text, str):
            raise InputError("a graph is read from a text.")
        return await self.studio.quick("read", text=text)

    async def write(self, request: Request) -> object:
        given = await self._json(request, "drawing", "form")
        drawing = Drawing.read(given["drawing"]).to_dict()
        text = await self.studio.quick("write", drawing=drawing, form=str(given["form"]))
        return {"text": text}

    async def fit(self, request: Request) -> object:
        await self._json(request)
        self.studio.start_fit()
        return {}

    async def ask(self, request: Request) -> object:
        given = await self._json(request, "question")
        self.studio.start_question(Question.read(given["question"]))
        return {}

    async def report(self, request: Request) -> object:
        await self._json(request)
        self.studio.start_report()
        return {}

    async def forget(self, request: Request) -> object:
        number = (await self._json(request, "number"))["number"]
        self.studio.forget_answer(number)
        return {}

    async def cancel(self, request: Request) -> object:
        await self._json(request)
        await self.studio.cancel()
        return {}

    async def example(self, request: Request) -> object:
        await self._json(request)
        path = self.studio.project.upload_path("nhefs.csv")
        write_example(path)
        await self.studio.open_table(path)
        self.studio.draw(example_drawing(), self.studio.project.revision)
        return {}

    async def code(self, _: Request) -> object:
        return self.studio.code()

    async def page(self, _: Request) -> object:
        path = self.studio.project.folder / "report.html"
        if self.studio.project.report is None or not path.exists():
            raise _Refused("there is no report yet; write one first.", 404)
        # The report is a page by itself, with its style inside and without scripts.
        policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
        headers = {"content-security-policy": policy, "content-type": "text/html; charset=utf-8"}
        return Response(path.read_bytes(), headers=headers)

    async def upload(self, request: Request) -> object:
        """Takes the bytes of a table as they come, aside first; too many of them leave nothing."""
        target = self.studio.project.upload_path(request.query_params.get("name", ""))
        self._refuse_length(request, self.largest)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=target.parent) as aside:
            part = Path(aside) / target.name
            with part.open("wb") as file:
                async for chunk in self._stream(request, self.largest):
                    file.write(chunk)
            await self.studio.quick("table", path=str(part))  # refuses what is no table
            part.replace(target)
        await self.studio.open_table(target)
        return {}

    async def events(self, request: Request) -> Response:
        queue = self.studio.listen()

        async def stream() -> AsyncIterator[str]:
            try:
                yield "retry: 1000\n\n"
                while True:
                    with suppress(TimeoutError):
                        message = await asyncio.wait_for(queue.get(), timeout=15.0)
                        yield f"data: {json.dumps(message)}\n\n"
                        if message["what"] == "closed":
                            return
                        continue
                    yield ": still here\n\n"
            finally:
                self.studio.leave(queue)

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def _json(self, request: Request, *names: str) -> dict[str, Any]:
        """Reads an object of JSON with just these parts."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise _Refused("a request is JSON, with the content type application/json.", 415)
        self._refuse_length(request, self.longest)
        body = b"".join([chunk async for chunk in self._stream(request, self.longest)])
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            raise _Refused("the request is no JSON.", 400) from None
        if not isinstance(given, dict) or given.keys() != {*names}:
            expected = f"an object with {', '.join(names)}" if names else "an empty object"
            raise _Refused(f"the request is not what is expected here: {expected}.", 400)
        return given

    def _refuse_length(self, request: Request, most: int) -> None:
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most:
            raise _Refused(f"that is too long: at most {most / 1e6:.0f} MB are taken here.", 413)

    async def _stream(self, request: Request, most: int) -> AsyncIterator[bytes]:
        taken = 0
        try:
            async for chunk in request.stream():
                taken += len(chunk)
                if taken > most:
                    raise _Refused(f"that is too long: at most {most / 1e6:.0f} MB.", 413)
                yield chunk
        except ClientDisconnect:
            raise _Refused("the connection was closed on the way.", 400) from None
