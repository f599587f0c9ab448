"""What cannot be done: exit code 2, one sentence that names the file or the option, no file
written; and beside each bad input a good one, which differs in that alone and exits with 0."""

import json
import os
import resource
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from misscnf.data.files import digest

PAIR = "--graph 'age -> y'"
CHECK = f"check data.csv {PAIR}"
FIT = f"fit data.csv {PAIR} --preset linear"
EFFECT = "effect model --on y --versus t=0 --draws 50"
SAMPLE = "sample model --rows 3"


class Case(NamedTuple):
    bad: str
    good: str
    says: str
    """What the sentence holds: the name of the file or the option at least."""
    before: Callable[[], object] | None = None
    """Makes the bad files."""
    spoil: Callable[[pytest.MonkeyPatch], object] | None = None
    """Makes the world worse for the bad command; the good one does without."""


def write(name, text):
    return lambda: Path(name).write_text(text)


def deep(name, part, before=""):
    return write(name, before + 20_000 * part)


def change(name, **columns):
    def make():
        pd.read_csv("data.csv").assign(**columns).to_csv(name, index=False)

    return make


def copy_model(file, edit):
    def make():
        shutil.copytree("model", "other")
        path = Path("other") / file
        path.write_bytes(edit(path.read_bytes()))

    return make


def altered(data):
    content = json.loads(data)
    content["about"]["seed"] = 99
    return json.dumps(content).encode()


def nonsense(**parts):
    """Changes what a model says of its columns, and works the digest out anew."""

    def edit(data):
        content = json.loads(data)
        content["about"]["schema"]["columns"][1] |= parts
        del content["digest"]
        content["digest"] = digest(json.dumps(content, sort_keys=True).encode())
        return json.dumps(content).encode()

    return copy_model("model.json", edit)


def odd_parquet():
    table = pa.table({"age": [1.0, 2.0, 3.0], "y": [1.0, 3.0, 2.0]})
    pq.write_table(table.replace_schema_metadata({"pandas": "{"}), "p.parquet")


def twice():
    table = pd.read_csv("data.csv")
    table.columns = ["age" if name == "dose" else name for name in table.columns]
    table.to_csv("twice.csv", index=False)


def small_disk(monkeypatch):
    """No file may grow beyond some bytes, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def no_permission(monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may do anything


def refuse_to_open(monkeypatch):
    def open_nothing(path, data):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "write_bytes", open_nothing)


CASES = {
    # ------------------------------------------------------------------------------- tables
    "table missing": Case(f"check nope.csv {PAIR}", CHECK, "'nope.csv'"),
    "table empty": Case(f"check e.csv {PAIR}", CHECK, "'e.csv' is empty", write("e.csv", "")),
    "header only": Case(
        f"check e.csv {PAIR}", CHECK, "'e.csv' has no rows", write("e.csv", "a,b\n")
    ),
    "binary": Case(
        f"check b.csv {PAIR}",
        CHECK,
        "'b.csv' is not UTF-8 text",
        lambda: Path("b.csv").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\xff\xfe"),
    ),
    "wrong separator": Case(f"{CHECK} --sep ;;", f"{CHECK} --sep ,", "--sep ';;'"),
    "wrong decimal sign": Case(f"{CHECK} --decimal x", f"{CHECK} --decimal .", "--decimal 'x'"),
    "dates of nobody": Case(f"{CHECK} --dates born", CHECK, "no column 'born'"),
    "an interval of strangers": Case(
        "counterfactual model two.csv --do t=0 --interval 0.9",
        "counterfactual model data.csv --do t=0 --interval 0.9",
        "these rows are not its table",
        lambda: pd.read_csv("data.csv").head(2).to_csv("two.csv", index=False),
    ),
    "long rows": Case(f"check l.csv {PAIR}", CHECK, "'l.csv'", write("l.csv", "age,y\n1,2,3\n")),
    "kind of file": Case(
        f"check d.xlsx {PAIR}", CHECK, "'.xlsx'", write("d.xlsx", "age,y\n1,2\n")
    ),
    "a folder for a table": Case(f"check model {PAIR}", CHECK, "'model' is a directory"),
    "broken Parquet": Case(
        f"check p.parquet {PAIR}", CHECK, "'p.parquet' cannot be read", write("p.parquet", "PAR1?")
    ),
    "corrupt metadata of pandas": Case(
        f"check p.parquet {PAIR}", CHECK, "'p.parquet' cannot be read", odd_parquet
    ),
    "table of nobody": Case(f"check ~nosuchuser/x.csv {PAIR}", CHECK, "'~nosuchuser'"),
    "NUL in a path": Case(f"check a\0b.csv {PAIR}", CHECK, "has a NUL character"),
    "integers beyond float64": Case(
        f"fit h.csv {PAIR} --out m",
        f"{FIT} --out m",
        "'h.csv': column 'y'",
        change("h.csv", y=10**400),
    ),
    "column twice": Case(f"check twice.csv {PAIR}", CHECK, "'twice.csv': the table has 2", twice),
    "column all missing": Case(
        f"fit n.csv {PAIR} --out m",
        f"{FIT} --out m",
        "'n.csv': column 'y'",
        change("n.csv", y=None),
    ),
    "column constant": Case(
        f"fit c.csv {PAIR} --out m",
        f"{FIT} --out m",
        "'c.csv': column 'y'",
        change("c.csv", y=1.5),
    ),
    "column of names": Case(
        "fit data.csv --graph 'id -> y' --out m",
        f"{FIT} --out m",
        "'data.csv': column 'id' looks like an identifier",
    ),
    "infinite value": Case(
        f"check i.csv {PAIR}", CHECK, "'i.csv': column 'y'", change("i.csv", y=float("inf"))
    ),
    # ------------------------------------------------------------------------------- graphs
    "graph with a cycle": Case(
        "check data.csv --graph g.dot",
        "check data.csv --graph graph.dot",
        "--graph 'g.dot': the graph has the cycle",
        write("g.dot", "digraph { age -> y; y -> age }"),
    ),
    "graph missing": Case("check data.csv --graph no.dot", CHECK, "'no.dot'"),
    "graph missing, odd name": Case("check data.csv --graph no/graph", CHECK, "--graph"),
    "graph unreadable": Case(
        "check data.csv --graph g.dot", CHECK, "g.dot", write("g.dot", "digraph { age -> ")
    ),
    "latent nobody drew": Case(
        f"check data.csv {PAIR} --latent u", CHECK, "--latent: latent names 'u', which is no node"
    ),
    "latent with a column": Case(
        f"check data.csv {PAIR} --latent age", CHECK, "'data.csv': the table has a column 'age'"
    ),
    "latent without children": Case(
        f"check data.csv {PAIR} --latent y", CHECK, "--latent: the latent node 'y' has no children"
    ),
    "latent with one class": Case(
        "check data.csv --graph 'c -> age; c -> y' --latent c=1", CHECK, "'c' has 1 classes"
    ),
    "latent with more classes than rows tell": Case(
        "check data.csv --graph 'c -> age; c -> y' --latent c=50",
        "check data.csv --graph 'c -> age; c -> y' --latent c=2",
        "'data.csv': the latent node 'c' has 50 classes",
    ),
    "latent, unreadable": Case(
        "check data.csv --graph 'c -> age' --latent c=two", CHECK, "--latent: 'c=two': expected"
    ),
    "graph of other columns": Case(
        "check data.csv --graph 'agee -> y'", CHECK, "'data.csv': node 'agee' has no column"
    ),
    "deep JSON": Case("check data.csv --graph g.json", CHECK, "nested", deep("g.json", '{"a": ')),
    "deep GML": Case("check data.csv --graph g.gml", CHECK, "nested", deep("g.gml", "graph [ ")),
    "deep DOT": Case(
        "check data.csv --graph g.dot", CHECK, "nested", deep("g.dot", "{ ", "digraph { ")
    ),
    "deep arrows": Case(
        "check data.csv --graph g.txt", CHECK, "nested", deep("g.txt", "{", "age -> ")
    ),
    "graph far too large": Case(
        "check data.csv --graph g.txt", CHECK, "'g.txt' has 2.1 MB", deep("g.txt", "a" * 105)
    ),
    # ------------------------------------------------------------------------------- fits
    "unknown preset": Case(
        f"fit data.csv {PAIR} --out m --preset atuo", f"{FIT} --out m", "--preset"
    ),
    "kinds not JSON": Case(
        f"{FIT} --out m --kinds k.json", f"{FIT} --out m", "'k.json'", write("k.json", "{age")
    ),
    "kinds of no column": Case(
        f"{FIT} --out m --kinds k.json",
        f"{FIT} --out m",
        "--kinds 'k.json'",
        write("k.json", '{"agee": "continuous"}'),
    ),
    "kinds unknown": Case(
        f"{FIT} --out m --kinds k.yaml",
        f"{FIT} --out m --kinds continuous",
        "--kinds 'k.yaml'",
        write("k.yaml", "age: contnuous\n"),
    ),
    "deep YAML": Case(
        f"{FIT} --out m --kinds k.yaml", f"{FIT} --out m", "nested", deep("k.yaml", "[", "age: ")
    ),
    "kinds far too large": Case(
        f"{FIT} --out m --kinds k.yaml",
        f"{FIT} --out m",
        "'k.yaml' has 2.1 MB",
        deep("k.yaml", "a" * 105),
    ),
    "kinds beyond float64": Case(
        f"{FIT} --out m --kinds k.json",
        f"{FIT} --out m",
        "expected a finite number",
        write("k.json", f'{{"age": {{"kind": "positive", "low": {10**400}}}}}'),
    ),
    "model into the root": Case(f"{FIT} --out /", f"{FIT} --out m", "--out: '/' is no name"),
    "kinds missing": Case(f"{FIT} --out m --kinds no.json", f"{FIT} --out m", "'no.json'"),
    "model into a file": Case(f"{FIT} --out data.csv", f"{FIT} --out m", "--out: 'data.csv'"),
    "model into nowhere": Case(f"{FIT} --out no/m", f"{FIT} --out m", "--out: there is no folder"),
    "model on a full disk": Case(
        f"{FIT} --out m", f"{FIT} --out m", "'m' cannot be written", None, small_disk
    ),
    "model over a model, full disk": Case(
        f"{FIT} --out model", f"{FIT} --out model", "'model' cannot be written", None, small_disk
    ),
    "model without permission": Case(
        f"{FIT} --out m", f"{FIT} --out m", "--out: 'm' may not be written", None, no_permission
    ),
    "checkpoint in a file": Case(
        f"{FIT} --out m --checkpoint data.csv", f"{FIT} --out m --checkpoint c", "--checkpoint"
    ),
    # ------------------------------------------------------------------------------- models
    "model missing": Case("sample no --rows 3", SAMPLE, "'no'"),
    "parameters cut off": Case(
        "sample other --rows 3",
        SAMPLE,
        "other/parameters.safetensors",
        copy_model("parameters.safetensors", lambda data: data[:-8]),
    ),
    "model cut off": Case(
        "sample other --rows 3",
        SAMPLE,
        "other/model.json",
        copy_model("model.json", lambda data: data[: len(data) // 2]),
    ),
    "model altered": Case(
        "sample other --rows 3", SAMPLE, "has been altered", copy_model("model.json", altered)
    ),
    "model of negative levels": Case(
        "sample other --rows 3", SAMPLE, "describes no model", nonsense(levels=-3)
    ),
    "model of a list for a name": Case(
        "sample other --rows 3", SAMPLE, "describes no model", nonsense(name=["age"])
    ),
    "model of something else": Case(
        "sample other --rows 3",
        SAMPLE,
        "is not a misscnf model",
        copy_model("model.json", lambda data: b'{"format": "else"}'),
    ),
    "table of another model": Case(
        "impute model o.csv --draws 1",
        "impute model data.csv --draws 1",
        "'o.csv' lacks 'age', 't', 'sex', 'dose', 'y', 'stage'",
        write("o.csv", "a,b\n1,2\n"),
    ),
    "effect with another table": Case(
        f"{EFFECT} --do t=1 --data o.csv",
        f"{EFFECT} --do t=1",
        "'o.csv' lacks",
        write("o.csv", "age,y\n1,2\n"),
    ),
    "scores of another table": Case(
        "log-prob model o.csv", "log-prob model data.csv", "'o.csv'", write("o.csv", "a,b\n1,2\n")
    ),
    "word in a number": Case(
        "log-prob model w.csv",
        "log-prob model data.csv",
        "'w.csv': column 'y' has 'tall'",
        change("w.csv", y=lambda table: table["y"].astype(object).where(table.index > 0, "tall")),
    ),
    "level not seen": Case(
        "impute model x.csv --draws 1",
        "impute model data.csv --draws 1",
        "'x.csv': column 'sex' has 'x'",
        change("x.csv", sex=lambda table: table["sex"].where(table.index > 0, "x")),
    ),
    "columns of an imputation": Case(
        "impute model x.csv --draws 1",
        "impute model data.csv --draws 1",
        "'x.csv': the table has a column '.id'",
        change("x.csv", **{".id": 1}),
    ),
    # ------------------------------------------------------------------------------- options
    "word for a number": Case(
        f"{EFFECT} --do dose=high", f"{EFFECT} --do dose=1", "--do dose=high"
    ),
    "no such level": Case(f"{EFFECT} --do t=2", f"{EFFECT} --do t=1", "--do t=2: expected one of"),
    "no such column": Case(f"{EFFECT} --do dos=1", f"{EFFECT} --do dose=1", "--do dos=1"),
    "no value": Case(f"{EFFECT} --do t", f"{EFFECT} --do t=1", "--do t"),
    "value twice": Case(f"{EFFECT} --do t=1 --do t=0", f"{EFFECT} --do t=1", "--do t=0"),
    "infinite dose": Case(f"{EFFECT} --do dose=inf", f"{EFFECT} --do dose=1", "--do dose=inf"),
    "grid backwards": Case(
        f"{EFFECT} --do dose=3:1:1", f"{EFFECT} --do dose=1:3:1", "--do dose=3:1:1"
    ),
    "grid too fine": Case(
        f"{EFFECT} --do dose=0:1:0.0001", f"{EFFECT} --do dose=0:1:0.5", "--do dose=0:1:0.0001"
    ),
    "grid for a sample": Case(
        f"{SAMPLE} --do dose=0:1:1", f"{SAMPLE} --do dose=0", "--do dose=0:1:1"
    ),
    "versus of no level": Case(
        "effect model --on y --do t=1 --versus t=no",
        "effect model --on y --do t=1 --versus t=0",
        "--versus t=no",
    ),
    "outcome unknown": Case(
        "effect model --on z --do t=1", "effect model --on y --do t=1", "--on"
    ),
    "event unknown": Case(
        "effect model --on stage --do t=1 --event lat",
        "effect model --on stage --do t=1 --event late",
        "--event lat",
    ),
    "event of a number": Case(f"{EFFECT} --do t=1 --event 1", f"{EFFECT} --do t=1", "--event"),
    "interval beyond 1": Case(
        f"{EFFECT} --do t=1 --interval 1.5", f"{EFFECT} --do t=1", "--interval is a share"
    ),
    "where with one =": Case(
        f"{EFFECT} --do t=1 --where 't = 1'",
        f"{EFFECT} --do t=1 --where 't == 1'",
        "two of them compare: 't == 1'",
    ),
    "where of a text and a number": Case(
        f"{EFFECT} --do t=1 --where 'stage > 3'",
        f"{EFFECT} --do t=1 --where 'dose > 1'",
        "--where: ",
    ),
    "two = in an arm": Case(f"{EFFECT} --do t==1", f"{EFFECT} --do t=1", "one = is enough: t=1"),
    "interval without its table": Case(
        f"{EFFECT} --do t=1 --interval 0.9",
        f"{EFFECT} --do t=1 --interval 0.9 --data data.csv",
        "--interval needs --data",
    ),
    "group of no sense": Case(
        f"{EFFECT} --do t=1 --where age>>3", f"{EFFECT} --do t=1 --where age>3", "--where"
    ),
    "group by a tower of powers": Case(
        f"{EFFECT} --do t=1 --where 'age > 10**10**10'",
        f"{EFFECT} --do t=1 --where 'age > 10**1'",
        "no unit of",
    ),
    "dose beyond float64": Case(
        f"{EFFECT} --do dose={10**400}", f"{EFFECT} --do dose=1", "expected a number"
    ),
    "group of nobody": Case(
        f"{EFFECT} --do t=1 --where age>9999", f"{EFFECT} --do t=1 --where age>3", "--where"
    ),
    "treated by a number": Case(
        f"{EFFECT} --do dose=1 --treated", f"{EFFECT} --do t=1 --treated", "on the treated"
    ),
    "treated along a grid": Case(
        f"{EFFECT} --do dose=1:3:1 --treated", f"{EFFECT} --do dose=1:3:1", "--treated"
    ),
    "no draws": Case(
        "impute model data.csv --draws 0", "impute model data.csv --draws 1", "'--draws'"
    ),
    "draws a word": Case(
        "impute model data.csv --draws few", "impute model data.csv --draws 1", "'--draws'"
    ),
    "rows below none": Case("sample model --rows -5", SAMPLE, "'--rows'"),
    "far too many rows": Case("sample model --rows 999999999999999", SAMPLE, "memory"),
    "effect without colon": Case(
        f"{CHECK} --effect age", f"{CHECK} --effect age:y", "--effect age"
    ),
    "effect of no node": Case(
        f"{CHECK} --effect ag:y", f"{CHECK} --effect age:y", "--effect ag:y"
    ),
    "given unknown": Case(
        "log-prob model data.csv --given ag", "log-prob model data.csv --given age", "--given"
    ),
    "option unknown": Case(f"{SAMPLE} --sed 1", f"{SAMPLE} --seed 1", "--sed"),
    "option left out": Case("check data.csv", CHECK, "'--graph'"),
    "verb unknown": Case("smaple model", SAMPLE, "smaple"),
    # ------------------------------------------------------------------------------- outputs
    "output of no kind": Case(f"{SAMPLE} --out s.xls", f"{SAMPLE} --out s.csv", "--out 's.xls'"),
    "output nowhere": Case(
        f"{SAMPLE} --out no/s.csv", f"{SAMPLE} --out s.csv", "--out: there is no"
    ),
    "output a folder": Case(
        f"{SAMPLE} --out f.csv",
        f"{SAMPLE} --out s.csv",
        "--out: 'f.csv'",
        lambda: os.mkdir("f.csv"),
    ),
    "output without permission": Case(
        f"{SAMPLE} --out s.csv", f"{SAMPLE} --out s.csv", "--out: 's.csv'", None, no_permission
    ),
    "output refused when written": Case(
        f"{SAMPLE} --out s.csv", f"{SAMPLE} --out s.csv", "'s.csv' cannot", None, refuse_to_open
    ),
    "full disk": Case(
        f"{SAMPLE} --out s.csv", f"{SAMPLE} --out s.csv", "'s.csv' cannot", None, small_disk
    ),
    "full disk, over a file": Case(
        f"{SAMPLE} --out data.csv", f"{SAMPLE} --out data.csv", "'data.csv'", None, small_disk
    ),
    "full disk, several files": Case(
        "impute model data.csv --wide --out c.csv",
        "impute model data.csv --wide --out c.csv",
        "'c-1.csv' cannot",
        None,
        small_disk,
    ),
    "several tables on one stream": Case(
        "impute model data.csv --wide", "impute model data.csv --wide --out c.csv", "--wide"
    ),
    "two things on one stream": Case(f"{SAMPLE} --json", f"{SAMPLE} --json --out s.csv", "--json"),
}


def files():
    return {str(path): path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_bad_input_is_refused_in_a_sentence_and_a_good_one_beside_it_is_not(
    case, call, monkeypatch
):
    if case.before is not None:
        case.before()
    before = files()
    with monkeypatch.context() as patch:
        undo = case.spoil(patch) if case.spoil else None
        try:
            result = call(shlex.split(case.bad))
        finally:
            if undo:
                undo()
    assert (result.exit_code, result.stdout) == (2, "")
    *notes, sentence = result.stderr.splitlines()
    assert sentence.startswith("misscnf: ")
    assert not any(note.startswith("misscnf: ") for note in notes)
    assert sentence.endswith((".", "?"))
    assert case.says in sentence
    assert files() == before
    good = call(shlex.split(case.good))
    assert good.exit_code == 0, good.stderr


def test_nothing_but_the_sentence_is_said_when_quiet(call):
    result = call(["fit", "data.csv", "--graph", "id -> y", "--out", "m", "--quiet"])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [(b"", "standard input is empty"), (b"\xff\xfe\x00", "standard input is not UTF-8 text")],
)
def test_standard_input_has_a_name(call, given, says):
    result = call(["log-prob", "model", "-"], given)
    assert result.exit_code == 2
    assert says in result.stderr


def test_a_long_graph_is_not_repeated_whole(call):
    result = call(["check", "data.csv", "--graph", "age -> y; " * 1000 + "("])
    assert result.exit_code == 2
    assert "--graph 'age -> y; age" in result.stderr
    assert len(result.stderr) < 400
