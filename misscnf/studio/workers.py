r"""Processes that do the work of the page, so that it can be cancelled and a crash stays outside.

    server ── a line of JSON a task ──▶ worker
           ◀── progress, then the answer or a sentence ──

A worker that is stopped is killed: whatever it was doing ends at once, and the next task starts
another. It ends by itself when its standard input is closed, so that none outlives the server,
however that ended.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from misscnf.errors import InputError

__all__ = ["Worker", "Crashed", "serve"]

Told = Callable[[dict[str, Any]], None]


class Crashed(Exception):
    """A worker ended before it answered."""


class Worker:
    """A process with the tasks of the page. It is started by its first task."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._waiting: dict[int, tuple[asyncio.Future[Any], Told | None]] = {}
        self._number = 0
        self._starting = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The number of the process, None where there is none."""
        return None if self._process is None else self._process.pid

    async def call(self, task: str, given: dict[str, Any], told: Told | None = None) -> Any:  # noqa: ANN401 - of JSON
        """Returns the answer to a task.

        Raises:
            InputError: If it was refused.
            Crashed: If the process ended, or was stopped, before the answer.
        """
        process = await self._started()
        self._number += 1
        number, answer = self._number, asyncio.get_running_loop().create_future()
        self._waiting[number] = answer, told
        line = json.dumps({"number": number, "task": task, "given": given}) + "\n"
        try:
            assert process.stdin is not None
            process.stdin.write(line.encode())
            await process.stdin.drain()
            return await answer
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Crashed from error
        finally:
            self._waiting.pop(number, None)

    async def stop(self) -> None:
        """Ends the process at once, with whatever it is doing."""
        process, reader = self._process, self._reader
        self._process = self._reader = None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if reader is not None:
            await asyncio.gather(reader, return_exceptions=True)

    async def _started(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._process is not None and self._process.returncode is None:
                return self._process
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "misscnf.studio.workers",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=2**28,  # bytes of one answer
                start_new_session=True,  # Ctrl-C in the terminal is for the server
            )
            self._reader = asyncio.create_task(self._read(self._process))
            return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            said = json.loads(line)
            answer, told = self._waiting.get(said["number"], (None, None))
            if answer is None or answer.done():
                continue
            if "progress" in said:
                if told is not None:
                    told(said["progress"])
            elif "refused" in said:
                answer.set_exception(InputError(said["refused"]))
            elif "failed" in said:
                answer.set_exception(Crashed(said["failed"]))
            else:
                answer.set_result(said["answer"])
        await process.wait()
        for answer, _ in self._waiting.values():
            if not answer.done():
                answer.set_exception(Crashed("the process that was working on it has ended"))


def serve() -> None:
    """Does tasks from standard input until it is closed: the body of a worker."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever prints must not be taken for an answer
    asked: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()
    from misscnf.studio.tasks import Desk

    desk = Desk()
    while True:
        request = json.loads(asked.get())
        number = request["number"]

        def say(number: int = number, **said: Any) -> None:  # noqa: ANN401 - of JSON
            out.write(json.dumps({"number": number, **said}) + "\n")
            out.flush()

        desk.told = lambda progress, say=say: say(progress=progress)  # type: ignore[misc]
        try:
            say(answer=desk.do(request["task"], request["given"]))
        except InputError as error:
            say(refused=" ".join(str(error).split()))
        except MemoryError:
            say(refused="there is not enough memory; ask for fewer rows or draws.")
        except Exception as error:
            logging.getLogger("misscnf").exception("a task of the studio failed")
            say(failed=f"a mistake of ours: {type(error).__name__}: {error}")


def _listen(asked: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        asked.put(line)
    os._exit(0)  # the server is gone: whatever is under way is for nobody


if __name__ == "__main__":
    serve()
