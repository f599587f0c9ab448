r"""From the command to the page: a socket of this machine alone, a secret, a browser, and an end.

The socket is opened on 127.0.0.1, where no other machine can reach it. Ctrl-C ends the server,
and with it the workers; the project is whole at any moment.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from misscnf.errors import InputError, naming
from misscnf.studio.drawing import Drawing, parts_of
from misscnf.studio.project import Project
from misscnf.studio.server import make_app
from misscnf.studio.studio import Studio

__all__ = ["run"]


def run(
    folder: str,
    data: str | None,
    graph: str | None,
    port: int,
    *,
    browser: bool,
    say: Callable[[str], None],
) -> None:
    """Serves the page until Ctrl-C.

    Arguments:
        folder: Of the project.
        data: A table to open.
        graph: A graph to draw: a file, or the text itself.
        port: Where to listen; 0 takes one that is free.
        browser: Whether to open the page.
        say: Is told the address.
    """
    project = Project.open(Path(folder))
    try:
        _open_given(project, data, graph)
        with _listening(port) as listener:
            port, token = listener.getsockname()[1], secrets.token_urlsafe(32)
            studio = Studio(project)
            config = uvicorn.Config(
                make_app(studio, token, port),
                log_level="warning",
                server_header=False,
                timeout_graceful_shutdown=2,
                lifespan="on",
            )
            address = f"http://127.0.0.1:{port}/?token={token}"

            def ready() -> None:
                say(address)
                if browser:
                    webbrowser.open(address)

            with contextlib.suppress(KeyboardInterrupt):
                _Server(config, studio, ready).run(sockets=[listener])
    finally:
        project.close()


class _Server(uvicorn.Server):
    """A server that says when it listens, and ends its workers before those who wait for them."""

    def __init__(self, config: uvicorn.Config, studio: Studio, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.studio, self.ready = studio, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        threading.Thread(target=self.ready, daemon=True).start()  # a browser may take its time

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self.studio.close()
        await super().shutdown(sockets)


def _open_given(project: Project, data: str | None, graph: str | None) -> None:
    if data is not None:
        path = Path(data).expanduser()
        if not path.is_file():
            raise InputError(f"there is no file {data!r}; check the path.")
        same = project.table is not None and project.table["path"] == str(path.resolve())
        if not same:
            project.take_table(path)
    if graph is not None:
        from misscnf import CausalGraph

        with naming(f"--graph {graph[:80]!r}"):
            parts = parts_of(CausalGraph.read(graph))
        kept = project.drawing.to_dict()
        given = {"kinds": kept["kinds"], "preset": kept["preset"], "seed": kept["seed"]}
        project.draw(Drawing.read({**parts, **given}), project.revision)


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise InputError(f"--port {port}: {error.strerror}; take another, or 0.") from error
    return listener
