r"""The code that does again what was done on the page: Python, and the command line.

Both are written from the project alone and give the same numbers, as they have the same table,
graph, kinds and seed. Names come from the table and may hold anything: each is written as a
literal of its language, so that none can become code.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

from misscnf.studio.drawing import Drawing, write_graph
from misscnf.studio.questions import Question

__all__ = ["python_code", "shell_code", "kinds_file"]


def python_code(table: str, drawing: Drawing, answers: Sequence[dict[str, Any]]) -> str:
    """Returns a script: check, fit, and each answer.

    Arguments:
        table: The path of the table.
        drawing: What the model was fitted to.
        answers: The answers, each with the `call` that gave it.
    """
    about = [f"table = {table!r}", f'graph = """\n{_in_quotes(write_graph(drawing, "dot"))}"""']
    more = ""
    if drawing.used_kinds:
        about.append(f"kinds = {drawing.used_kinds!r}")
        more += ", kinds=kinds"
    if drawing.auxiliary:
        about.append(f"auxiliary = {list(drawing.auxiliary)!r}")
        more += ", auxiliary=auxiliary"
    if drawing.panel:
        more += ", id={!r}, time={!r}".format(*drawing.panel)
    asked = "" if drawing.asked is None else f", effect={drawing.asked!r}"
    lines = [f"print(check(table, graph{asked}{more}))"]
    lines.append(
        f"model = MissCNF(graph, {drawing.preset!r}, seed={drawing.seed}{more}).fit(table)"
    )
    imports = ["from misscnf import MissCNF, check"]
    if any(one["call"]["rows"] is not None for one in answers):
        imports.insert(0, "import pandas as pd\n")
        about.append(f"rows = pd.{_reader(table)}(table)")
    lines += [f"\n{_call(one['call'])}" for one in answers]
    return "\n".join([*imports, "", *about, "", *lines, ""])


def _call(call: dict[str, Any]) -> str:
    said = dict(call["arguments"])
    first = [repr(said.pop("outcome"))] if "outcome" in said else []
    if call["method"] == "risk":
        first = [repr(said.pop("event"))]
    if call["rows"] is not None:
        first = [f"rows.iloc[[{call['rows'] - 1}]]"]
    words = [*first, *(f"{name}={value!r}" for name, value in said.items())]
    if call["rows"] is None:
        words.append("data=table")
    return f"print(model.{call['method']}({', '.join(words)}))"


def _reader(table: str) -> str:
    return "read_parquet" if table.lower().endswith(".parquet") else "read_csv"


def _in_quotes(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def shell_code(
    table: str, drawing: Drawing, answers: Sequence[dict[str, Any]], *, report: bool
) -> str:
    """Returns the commands that do the same, from the project's folder.

    Arguments:
        table: The path of the table.
        drawing: What the model was fitted to.
        answers: The answers, each with its `question`.
        report: Whether a report was written.
    """
    data, shared = shlex.quote(table), "--graph graph.dot"
    shared += " --kinds kinds.json" if drawing.used_kinds else ""
    if drawing.panel:
        shared += " --id {} --time {}".format(*map(shlex.quote, drawing.panel))
    if drawing.auxiliary:
        shared += f" --auxiliary {shlex.quote(','.join(drawing.auxiliary))}"
    pair = "" if drawing.asked is None else shlex.quote(":".join(drawing.asked))
    effect = f" --effect {pair}" if pair else ""
    lines = [f"misscnf check {data} {shared}{effect}"]
    preset = f"--preset {shlex.quote(drawing.preset)} --seed {drawing.seed}"
    lines.append(f"misscnf fit {data} {shared} {preset} --out model")
    asked = [Question.read(one["question"]) for one in answers]
    lines += [_command(one, data, over_time=drawing.panel is not None) for one in asked]
    if report:
        lines.append(f"misscnf report model {data}{effect} --out report.html")
    return "\n".join([*lines, ""])


def _command(asked: Question, data: str, *, over_time: bool) -> str:
    if over_time and asked.kind in ("effect", "curve"):
        return "# An effect of a regime on one visit is asked in Python: analysis.py has it."
    words = [f"--do {shlex.quote(f'{name}={text}')}" for name, text in asked.do.items()]
    if asked.kind == "row":
        verb = "counterfactual" if asked.do else "impute"
        out = f"--draws {asked.draws} --seed {asked.seed} --out {verb}.csv"
        return f"misscnf {verb} model {data} {' '.join([*words, out])}  # of all rows"
    if asked.kind == "curve":
        grid = f"{asked.along}={asked.low!r}:{asked.high!r}:{asked.step!r}"
        words.append(f"--do {shlex.quote(grid)}")
    words += [f"--versus {shlex.quote(f'{name}={text}')}" for name, text in asked.versus.items()]
    if asked.kind == "risk":
        return _risk(asked, words, data)
    if asked.kind == "sensitivity":
        return _sensitivity(asked, words, data)
    groups = ("by",) if asked.kind == "effect" else ()  # a curve has none, nor one on the treated
    for name in ("where", *groups, "event", "population"):
        if getattr(asked, name):
            words.append(f"--{name} {shlex.quote(getattr(asked, name))}")
    words += ["--treated"] if asked.treated and groups else []
    words += [f"--statistic {shlex.quote(asked.statistic)}"] if asked.statistic != "mean" else []
    words += [] if asked.interval is None else [f"--interval {asked.interval:g}"]
    seed = f"--seed {asked.seed} --data {data}"
    return " ".join([f"misscnf effect model --on {shlex.quote(asked.on)}", *words, seed])


def _risk(asked: Question, words: list[str], data: str) -> str:
    words += ["--versus natural"] if asked.do and not asked.versus else []
    words += [f"--where {shlex.quote(asked.where)}"] if asked.where else []
    words += [] if asked.competing == "total" else [f"--competing {asked.competing}"]
    words += [] if asked.interval is None else [f"--interval {asked.interval:g}"]
    seed = f"--seed {asked.seed} --data {data}"
    return " ".join([f"misscnf risk model --on {shlex.quote(asked.on)}", *words, seed])


def _sensitivity(asked: Question, words: list[str], data: str) -> str:
    if asked.where or asked.population or asked.statistic != "mean":
        return (
            "# A sensitivity within a group, or of a statistic, is asked in Python: analysis.py."
        )
    words.append(f"--{asked.what}={asked.low!r}:{asked.high!r}:{asked.step!r}")
    words += [f"--arm {asked.arm}"] if asked.arm and asked.what != "strength" else []
    words += [f"--loss {shlex.quote(asked.loss)}"] if asked.loss else []
    words += [f"--event {shlex.quote(asked.event)}"] if asked.event else []
    words.append(f"--interval {0 if asked.interval is None else asked.interval:g}")
    seed = f"--seed {asked.seed} --data {data}"
    return " ".join([f"misscnf sensitivity model --on {shlex.quote(asked.on)}", *words, seed])


def kinds_file(drawing: Drawing) -> str:
    """Returns the kinds that were asked for, as `--kinds` reads them."""
    return json.dumps(drawing.used_kinds, indent=1, ensure_ascii=False) + "\n"
