r"""What a worker can do, each by the verb of the command line that does the same.

    table    what the page shows of a table          check    what the holes leave identified
    kinds    what each column is taken for           fit      a model, saved in a folder
    graph    a text as a drawing, and back           ask      an effect, a curve, a row
    report   the page about the model

Everything is asked of the public face of misscnf with the arguments that the command line would
give, so that the same seed gives the same number in both. The last table and the last model that
were used stay open.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

import misscnf  # each name is imported when it is first used: a table need not wait for torch
from misscnf.data.files import jsonable, read_table
from misscnf.errors import InputError
from misscnf.studio.drawing import Drawing, read_graph, write_graph
from misscnf.studio.questions import Question
from misscnf.studio.tables import cell_text, describe_table, drawn_text

if TYPE_CHECKING:
    from misscnf import MissCNF

__all__ = ["Desk"]


class Desk:
    """Does one task after the other. `told` hears of the progress of the one under way."""

    def __init__(self) -> None:
        self.told: Callable[[dict[str, Any]], None] = lambda _: None
        self._table: tuple[object, pd.DataFrame] | None = None
        self._model: tuple[str, MissCNF] | None = None

    def do(self, task: str, given: dict[str, Any]) -> Any:  # noqa: ANN401 - of JSON
        """Returns the answer to a task, as JSON has it."""
        verbs: dict[str, Callable[..., Any]] = {
            "table": self.table,
            "kinds": self.kinds,
            "warm": self.warm,
            "check": self.check,
            "read": read_graph,
            "write": self.write,
            "fit": self.fit,
            "ask": self.ask,
            "report": self.report,
        }
        return jsonable(verbs[task](**given))

    def table(self, path: str) -> dict[str, Any]:
        """Returns what the page shows of a table."""
        return describe_table(self._read(path))

    def warm(self) -> None:
        """Imports what a check needs, by a small one, before one is asked for."""
        small = pd.DataFrame({"a": [0.0, 1.0, 2.0] * 20, "b": [1.0, None, 3.0, 5.0] * 15})
        misscnf.check(small, "a -> b", effect=("a", "b"))
        misscnf.describe_kinds(small)

    def kinds(self, path: str, kinds: dict[str, Any]) -> list[Any]:
        """Returns what each column is taken for, and why."""
        frame = self._read(path)
        asked = {name: kind for name, kind in kinds.items() if name in frame.columns}
        return misscnf.describe_kinds(frame, asked or None).to_dict(orient="records")

    def check(
        self, path: str, drawing: dict[str, Any], rows: int | None = None, *, quick: bool = False
    ) -> dict[str, Any]:
        """Returns the report on a drawing, from all rows or from some that are drawn.

        A quick one accuses the graph of nothing that only boosted trees can confirm: of many nodes
        these take longest, and the page asks for the whole report after it.
        """
        drawn, frame = Drawing.read(drawing), self._read(path)
        graph, among = drawn.source(), len(frame)
        if rows is not None and rows < among:
            frame = _some(frame, rows, drawn)
        settings = {"independences.most_confirmed": 0} if quick else None
        report = misscnf.check(
            frame, graph, effect=drawn.asked, settings=settings, **drawn.given()
        )
        told: dict[str, Any] = {"summary": report.summary()}
        told |= {"among": among, "checked": len(frame), "quick": quick}
        if isinstance(report, misscnf.PanelReport):
            return _over_time(report) | told
        told |= {"title": report.glance()[0], "facts": report.glance()[1]}
        told["unlikely"] = [one.sentence for one in report.unlikely]
        told["recovery"] = [one.sentence for one in report.recovery]
        return report.to_dict() | told

    def write(self, drawing: dict[str, Any], form: str) -> str:
        """Returns a drawing as text."""
        return write_graph(Drawing.read(drawing), form)

    def fit(self, path: str, drawing: dict[str, Any], out: str, checkpoint: str) -> dict[str, Any]:
        """Fits a model and saves it in a folder that is not there yet."""
        drawn, frame, start = Drawing.read(drawing), self._read(path), time.monotonic()
        model = misscnf.MissCNF(
            drawn.source(),
            drawn.preset,
            seed=drawn.seed,
            progress=self._step,
            **drawn.given(),
        )
        model.fit(frame, checkpoint=checkpoint)
        model.save(out)
        self._model = out, model
        return {
            "seconds": round(time.monotonic() - start, 1),
            "card": str(model),
            "forms": {name: str(form) for name, form in model.forms_.items()},
            "unlikely": [one.sentence for one in model.unlikely_],
        }

    def ask(self, path: str, model: str, question: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer to a question, and keeps replicates of the fit beside the model."""
        asked, frame, fitted = Question.read(question), self._read(path), self._open(model)
        call = asked.call(fitted)
        if call.rows is not None:
            answer = self._of_a_row(fitted, frame, asked, call.arguments)
        elif call.method == "sensitivity":
            found = fitted.sensitivity(data=frame, **call.arguments)
            assert isinstance(found, misscnf.Sensitivity)
            answer = {**found.to_dict(), "title": found.title, "told": found.told}
        elif call.method == "risk":
            risks = fitted.risk(data=frame, **call.arguments)
            lines = str(risks).partition(f"\n{risks.time} ")  # the page draws the table itself
            answer = {**risks.to_dict(), "told": lines[0]}
            answer["table"] = risks.table.to_dict(orient="records")
        elif call.method == "curve":
            curve = fitted.curve(data=frame, **call.arguments)
            answer = {"curve": curve.to_dict(orient="records")}
            answer |= {str(name): said for name, said in curve.attrs.items()}
        else:
            effect = fitted.effect(data=frame, **call.arguments)
            lower, upper = effect.interval or (None, None)
            groups = None if effect.groups is None else effect.groups.to_dict()
            answer = {**vars(effect), "lower": lower, "upper": upper, "groups": groups}
            answer |= {"title": effect.title, "told": str(effect)}
        if asked.interval is not None and call.rows is None:
            fitted.save(model)  # with replicates of the fit: a further interval is quick
        return {"answer": answer, "call": vars(call)}

    def report(self, path: str, model: str, effect: list[str] | None, out: str) -> dict[str, Any]:
        """Writes the page about the model."""
        pair = None if effect is None else (effect[0], effect[1])
        page, target = Path(f"{out}.part"), Path(out)
        fitted = self._open(model)
        misscnf.write_report(fitted, self._read(path), page, effect=pair)
        page.replace(target)
        fitted.save(model)
        return {"effect": effect}

    def _of_a_row(
        self, model: MissCNF, frame: pd.DataFrame, asked: Question, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Returns what a row may hide, or would have been: draws of its cells, in brief."""
        if model.panel_ is not None:
            raise InputError(
                "a row of a table over time is one visit of a person; complete the whole table "
                "by `misscnf impute`."
            )
        if not 1 <= asked.row <= len(frame):
            raise InputError(f"the table has rows 1 to {len(frame)}; there is no row {asked.row}.")
        line = frame.iloc[[asked.row - 1]]
        drawn = (
            model.counterfactual(line, **arguments)
            if asked.do
            else model.impute(line, **arguments)
        )
        nodes = [name for name in drawn.columns if name in model.graph_.nodes]
        cells = [
            {"name": name, "shown": cell_text(line[name].iloc[0])}
            for name in nodes
            if name in line
        ]
        found: list[dict[str, Any]] = []
        for cell in cells:
            values = drawn[cell["name"]]
            texts = values.map(lambda value, shown=cell["shown"]: drawn_text(value, shown))
            if pd.api.types.is_numeric_dtype(values) and texts.nunique() > 6:
                ends = values.quantile([0.05, 0.5, 0.95])
                found.append({**cell, "numbers": [float(end) for end in ends]})
            else:
                shares = texts.value_counts(normalize=True)
                told = [(text, float(p)) for text, p in shares.items() if p > 0]
                found.append({**cell, "shares": told})
        return {"row": asked.row, "cells": found, "draws": len(drawn)}

    def _read(self, path: str) -> pd.DataFrame:
        file = Path(path)
        try:
            key = (path, file.stat().st_mtime_ns, file.stat().st_size)
        except OSError:
            raise InputError(f"the table {file.name!r} is gone; open it again.") from None
        if self._table is None or self._table[0] != key:
            frame = read_table(path, repr(file.name))
            if frame.index.name is not None:  # of a Parquet file
                frame = frame.reset_index()
            self._table = key, frame
        return self._table[1]

    def _open(self, folder: str) -> MissCNF:
        if self._model is None or self._model[0] != folder:
            self._model = folder, misscnf.MissCNF.load(folder)
        model = self._model[1]
        model.progress = self._step
        return model

    def _step(self, done: int, total: int, note: str, stage: str) -> None:
        self.told({"done": done, "total": total, "note": note, "stage": stage})


def _some(frame: pd.DataFrame, rows: int, drawing: Drawing) -> pd.DataFrame:
    """Returns so many rows by chance; over time those of whole people."""
    if drawing.panel is None or drawing.panel[0] not in frame.columns:
        return frame.sample(rows, random_state=0)
    who = frame[drawing.panel[0]]
    people = who.drop_duplicates()
    count = max(1, round(len(people) * rows / len(frame)))
    return frame[who.isin(people.sample(count, random_state=0))]


def _over_time(report: misscnf.PanelReport) -> dict[str, Any]:
    """Returns a report on a table over time with the parts that the page shows of any report."""
    found = report.to_dict()
    lines = report.summary().splitlines()
    return {
        "ok": report.ok,
        "effect": found["effect"],
        "nodes": [{**family, "node": family["family"]} for family in found["families"]],
        "regions": found["regions"],
        "recovery": [line for line in lines if line.startswith("The effect of ")],
        "full_pattern": " ".join(lines[:2]),
        "title": lines[0],
        "facts": {},
        "unlikely": [],
        "structural_holes": [],
        "visits": found["visits"],
    }
