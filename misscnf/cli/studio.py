"""`misscnf studio`: table, drawn graph, check, fit and answers on a page of this machine."""

from __future__ import annotations

import importlib.util
from typing import Annotated

import typer

from misscnf.cli.endings import in_a_sentence, say
from misscnf.cli.options import Json, Quiet, option
from misscnf.errors import InputError

__all__ = ["studio"]


@in_a_sentence
def studio(
    data: Annotated[
        str | None, typer.Argument(metavar="DATA", help="A table to open; the page takes one too.")
    ] = None,
    *,
    graph: Annotated[
        str | None, option("--graph", "A graph to draw: a file or text, 'a -> b'.")
    ] = None,
    project: Annotated[
        str, option("--project", "The folder that keeps everything.", "DIR")
    ] = "misscnf-studio",
    port: Annotated[
        int, option("--port", "Where it listens; 0 takes a free one.", "N", min=0, max=65535)
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw the graph, see the holes, fit and ask, on a page of your own machine.

    The page is at the address that is printed, and goes on until Ctrl-C.
    """
    missing = [name for name in ("starlette", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"the studio needs {' and '.join(missing)}; `pip install 'misscnf[studio]'` brings it."
        )
    from misscnf.cli import outputs
    from misscnf.studio.run import run

    def tell(address: str) -> None:
        if json:
            outputs.print_json({"address": address, "project": project})
        else:
            typer.echo(f"The studio is at {address}")
        say("Ctrl-C ends it; everything is kept in " + repr(project))

    run(project, data, graph, port, browser=browser, say=tell)
