"""Whatever people, programs and broken disks hand in: an answer, or a sentence; never a traceback.

Hypothesis builds inputs from the pieces that the readers know, and spoils files that are right.
`make test` repeats the same 500 of them; `make fuzz` draws 10,000 anew, FUZZ times as many.
"""

import copy
import io
import json
import logging
import os

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save

from misscnf import InputError, MissCNF, ModelFileError
from misscnf.data.files import digest, read_table
from misscnf.data.kinds import read_requests
from misscnf.data.table import IncompleteTable
from misscnf.fitting.settings import Settings
from misscnf.graph import CausalGraph
from misscnf.graph.readers import read_text
from misscnf.options import change, flatten, from_dict, to_dict
from misscnf.queries.expressions import Expression
from misscnf.queries.groups import Group

TIMES = int(os.environ.get("FUZZ", "1"))
NESTED = 20_000


def fuzz(examples):
    return settings(
        max_examples=TIMES * examples,
        derandomize=TIMES == 1,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


def words(text):
    return text.split()


def pieces(*known, most=30):
    """Texts of known pieces, with a stray character now and then."""
    word = st.one_of(st.sampled_from(known), st.sampled_from(known), st.text(max_size=3))
    return st.lists(word, max_size=most).map("".join)


def said(function, *arguments, **options):
    """Calls something, which may refuse in a sentence; returns None then."""
    try:
        return function(*arguments, **options)
    except InputError:
        return None


@pytest.fixture(autouse=True)
def quiet():
    logger = logging.getLogger("misscnf")
    before, logger.level = logger.level, logging.CRITICAL
    yield
    logger.setLevel(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


# ------------------------------------------------------------------------------------- values

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([-1, 0, 1, 2**63, -(2**63) - 1, 10**30, 10**400]),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from(["a", "b", "continuous", "ordinal", "x > 1", "nan", "\0", "~nobody/x.csv"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
    ),
    max_leaves=6,
)


# ------------------------------------------------------------------------------------- graphs

GRAPH_PIECES = (
    *words('a b c "x.1" -> <- <-> -- → { } [ ] ; , = ~ ~~ =~ + * 1 < # // /* */ \\ " : <b>'),
    *("\n", " ", '"x y"', "\0", "\ufeff", "digraph ", "dag ", "graph ", "strict ", "subgraph "),
    *("cluster_k", "node", "edge", "[dir=both]", "[latent]", '{"a": ["b"]', '"c": []'),
    *(
        "graph [",
        "directed 1",
        "id 0",
        "id 1",
        'label "a"',
        "source 0",
        "target 1",
        "node [",
        "]\n",
    ),
    *("cause,effect\n", "a,b\n"),
)
SUFFIXES = ["", ".dot", ".gml", ".csv", ".json", ".lav", ".txt"]


def read_graph(text, suffix):
    nodes, edges, blocks, latent = read_text(text, suffix)
    return CausalGraph.from_edges(edges, nodes, blocks, (), latent)


@fuzz(90)
@given(pieces(*GRAPH_PIECES), st.sampled_from(SUFFIXES))
@example('{"nodes":' * NESTED, "")
@example('{"a": ' + "[" * NESTED, ".json")
@example("graph [ " * NESTED, "")
@example("digraph { " + "{ " * NESTED, "")
@example("a -> " + "{" * NESTED, "")
@example("a < " + "{" * NESTED, "")
@example("\n" * NESTED, ".gml")
def test_a_text_is_a_graph_or_refused(text, suffix):
    for read in (lambda: read_graph(text, suffix), lambda: CausalGraph.read(text)):
        graph = said(read)
        if graph is not None:
            again = CausalGraph.read(graph.to_dict())
            assert (set(again.nodes), set(again.edges)) == (set(graph.nodes), set(graph.edges))


NAMES = st.one_of(st.sampled_from(["a", "b", "c", "d"]), SCALARS)


@fuzz(40)
@given(
    st.one_of(
        st.lists(st.tuples(NAMES, NAMES), max_size=5),
        st.dictionaries(st.text(max_size=2), VALUES, max_size=3),
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4).map(nx.DiGraph),
        st.lists(st.lists(SCALARS, min_size=2, max_size=2), min_size=2, max_size=2).map(
            lambda rows: pd.DataFrame(rows, index=["a", "b"], columns=["b", "a"], dtype=object)
        ),
        VALUES,
    ),
    st.one_of(st.none(), st.dictionaries(st.text(max_size=2), VALUES, max_size=2)),
)
def test_an_object_is_a_graph_or_refused(source, blocks):
    graph = said(CausalGraph.read, source, blocks)
    assert graph is None or len(graph) > 0


# ------------------------------------------------------------------------------------- questions

CELLS = {
    "dose": pd.Series([1.0, 2.0, np.nan]),
    "age": pd.Series([50, 60, 70], dtype="Int64"),
    "stage": pd.Series(["I", "II", "III"], dtype="category"),
    "well": pd.Series([True, False, True]),
    "x y": pd.Series([1, 0, 1], dtype=object),
}
WORDS = (
    *words("dose age stage well 'II' 1 2.5 True 1e308 0 ( ) , ` ' . [ ] ~ lambda: .isna()"),
    *words("min( max( abs( round( log( where( clip( .between( bernoulli( normal( choose("),
    *(f" {word} " for word in words("+ - * / // % ** < >= == != in not and or & | if else")),
    *("`x y`", "('I', 'II')", "[1, 2]", " not in ", "9" * 400),
)


@fuzz(100)
@given(pieces(*WORDS, most=14))
@example("dose > 10**10**10")
@example("(" * 900 + "dose" + ")" * 900)
@example("not " * 400 + "well")
@example("dose" + " ** 9" * 300)
def test_a_text_is_an_expression_or_refused(text):
    rule = said(Expression.parse, text)
    if rule is not None and set(rule.columns) <= set(CELLS):
        said(rule.evaluate, CELLS)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "dose": rng.normal(size=60),
            "stage": rng.choice(["I", "II", "III"], 60),
            "well": rng.choice([True, False], 60),
            "number": rng.poisson(4.0, 60),
        }
    )
    table["outcome"] = table["dose"] + table["well"] + rng.normal(size=60)
    graph = "dose -> outcome; well -> outcome; stage -> number; outcome -> number"
    kinds = {"stage": ["I", "II", "III"], "number": "count"}
    return MissCNF(graph, "linear", kinds=kinds, progress=False).fit(table)


@fuzz(40)
@given(
    st.dictionaries(
        st.sampled_from(["dose", "well", "stage", "number", "no"]), VALUES, max_size=2
    ),
    st.one_of(st.none(), VALUES, pieces("dose > 0", " and ", "well", "~", "stage == 'I'", most=4)),
    VALUES,
)
def test_an_effect_is_answered_or_refused(model, do, where, event):
    if where is None or isinstance(where, str):
        said(Group, model.graph_, model.schema_, where, do)
    else:
        where = None
    said(model.effect, "outcome", do, where=where, draws=20)
    said(model.effect, "stage", do, event=event, draws=20)
    said(model.curve, "outcome", "dose", [*do.values()], draws=20)


@fuzz(40)
@given(
    st.dictionaries(
        st.one_of(st.sampled_from([*flatten(Settings()), "selection", "epochs", "z"]), st.text()),
        VALUES,
        max_size=2,
    )
)
def test_settings_are_changed_or_refused(changes):
    start = Settings()
    found = said(change, start, changes)
    if found is not None:
        assert from_dict(Settings, to_dict(found)) == found or changes != changes
    said(from_dict, Settings, changes)


# ------------------------------------------------------------------------------------- files

KIND_PIECES = (
    *words("a b : - [ ] { } , ? &x *x !! 1 1e999 .nan 0b_ 2020-99-99"),
    *words("continuous ordinal binary bounded kind levels low high"),
    *(": ", "\n", "  ", "- ", ", ", '"', "'", "<<: ", "1:" * 300 + "1", "9" * 5000),
    *("!!int ''", "!!bool x", "!!timestamp x", "!!float ''", '{"a": "ordinal"', "10}}"),
    '{"a": {"kind": "bounded", "low": 0, "high": ',
)


@fuzz(50)
@given(pieces(*KIND_PIECES), st.sampled_from([".json", ".yaml"]))
@example('{"a": ' * NESTED, ".json")
@example("- " * NESTED, ".yaml")
@example("a: " + "[" * NESTED, ".yaml")
@example('{"a": {"kind": "positive", "low": ' + "9" * 400 + "}}", ".json")
def test_a_file_of_kinds_is_read_or_refused(folder, text, suffix):
    path = folder / f"kinds{suffix}"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "b": [0.5, 1.5, 2.0, 0.1]})
    if said(read_requests, path, ["a", "b"]) is not None:
        said(IncompleteTable.read, frame, ["a", "b"], kinds=path)


CSV_PIECES = (
    *words("a , NA inf - ; 1_0"),
    *("\n", "\r", '"', "\t", "\0", "\ufeff", "a,b\n", "1,2\n", "3,4\n", "0.5,x\n", ",\n"),
    *("9" * 30 + ",1\n", "9" * 400 + ",2\n", "1e999,1\n", "True,0\n", "2020-01-01,1\n"),
)


@fuzz(60)
@given(pieces(*CSV_PIECES, most=12), st.binary(max_size=3), st.sampled_from([".csv", ".tsv"]))
@example("a,b\n" + "".join(f"{10**30 + i},{i}\n" for i in range(20)), b"", ".csv")
@example("a,b\n" + "".join(f"{10**30 * i},{i}\n" for i in range(20)), b"", ".csv")
def test_a_text_is_a_table_or_refused(folder, text, end, suffix):
    path = folder / f"table{suffix}"
    path.write_bytes(text.encode("utf-8", "surrogatepass") + end)
    frame = said(read_table, path)
    if frame is not None:
        table = said(IncompleteTable.read, frame, list(map(str, frame.columns)))
        if table is not None:
            assert table.values.isfinite().all()
            table.schema.decode_frame(table.values)


def parquet(metadata=None):
    arrow = pa.Table.from_pandas(pd.DataFrame({"a": [1, 2, 3, 4], "b": ["x", "y", "x", None]}))
    if metadata is not None:
        arrow = arrow.replace_schema_metadata({b"pandas": metadata})
    buffer = io.BytesIO()
    pq.write_table(arrow, buffer)
    return buffer.getvalue()


def spoil(data, at, new):
    """Puts bytes over others, from a place that is a share of the whole."""
    place = int(at * (len(data) - 1))
    return data[:place] + new + data[place + len(new) :]


def mutate(tree, way, value):
    """Replaces, drops or doubles what a way, of shares, leads to in a tree of lists and dicts."""
    tree = copy.deepcopy(tree)
    here, key = tree, None
    for share in way:
        inside = here if key is None else here[key]
        if not isinstance(inside, dict | list) or not inside:
            break
        here = inside
        keys = list(here) if isinstance(here, dict) else range(len(here))
        key = keys[int(share * (len(keys) - 1))]
    if key is None:
        return value
    if value == "drop":
        del here[key]
    elif value == "double" and isinstance(here, list):
        here.append(here[key])
    else:
        here[key] = value
    return tree


WAY = st.lists(st.floats(0, 1), min_size=1, max_size=6)
NONSENSE = st.one_of(VALUES, st.sampled_from(["drop", "double"]))
PANDAS = json.loads(pa.Table.from_pandas(pd.DataFrame({"a": [1]})).schema.metadata[b"pandas"])


@fuzz(40)
@given(
    way=WAY,
    value=NONSENSE,
    at=st.floats(0, 1),
    new=st.binary(max_size=4),
    of_pandas=st.booleans(),
)
@example(way=[0.0], value="drop", at=0.0, new=b"", of_pandas=True)
def test_a_parquet_file_is_a_table_or_refused(folder, way, value, at, new, of_pandas):
    path = folder / "table.parquet"
    if of_pandas:  # what pandas keeps beside the columns
        data = parquet(json.dumps(mutate(PANDAS, way, value)).encode("utf-8", "replace"))
    else:
        data = parquet()
    path.write_bytes(spoil(data, at, new))
    frame = said(read_table, path)
    if frame is not None and all(isinstance(name, str) for name in frame.columns):
        said(IncompleteTable.read, frame, list(frame.columns))


@pytest.fixture(scope="module")
def saved(model, folder):
    model.save(folder / "right")
    content = json.loads((folder / "right" / "model.json").read_text())
    return content, (folder / "right" / "parameters.safetensors").read_bytes()


def write_model(folder, content, data):
    """Writes files of a model that vouch for each other, whatever is in them."""
    content = {key: value for key, value in content.items() if key != "digest"}
    content["parameters"] = digest(data)
    content["digest"] = digest(json.dumps(content, sort_keys=True).encode())
    folder.mkdir(exist_ok=True)
    (folder / "model.json").write_text(json.dumps(content))
    (folder / "parameters.safetensors").write_bytes(data)


@fuzz(40)
@given(
    way=WAY,
    value=NONSENSE,
    at=st.floats(0, 1),
    new=st.binary(max_size=4),
    of_tensors=st.booleans(),
)
@example(way=[0.0], value="drop", at=0.0, new=b"", of_tensors=False)
def test_a_model_is_loaded_or_refused(folder, saved, way, value, at, new, of_tensors):
    content, data = saved
    if of_tensors:
        data = spoil(data, at, new)
    else:
        content = mutate(content, way, value)
    if not isinstance(content, dict):
        content = {}
    write_model(folder / "wrong", content, data)
    try:
        found = MissCNF.load(folder / "wrong")
    except ModelFileError:
        return
    repr(found), found.kinds_, found.chosen_, found.blocks_
    drawn = said(found.sample, 3)
    if drawn is not None:
        said(found.log_prob, drawn)
    said(found.effect, "outcome", {"well": True}, draws=20)


@pytest.mark.parametrize(
    ("part", "nonsense"),
    [("rough", None), ("rough", {"outcome": {}}), ("rough", {"nobody": {}}), ("timings", 3)],
)
def test_what_is_known_of_a_fit_makes_sense_or_is_refused(folder, saved, part, nonsense):
    content, data = copy.deepcopy(saved)
    content["about"][part] = nonsense
    write_model(folder / "wrong", content, data)
    with pytest.raises(ModelFileError, match="describes no model"):
        MissCNF.load(folder / "wrong")


def test_parameters_that_are_no_numbers_are_refused(folder, saved):
    content, data = saved
    tensors = load(data)
    name = max(sorted(tensors), key=lambda name: tensors[name].numel())
    for spoilt in (tensors[name] * np.nan, tensors[name][None]):
        write_model(folder / "wrong", content, save({**tensors, name: spoilt.contiguous()}))
        with pytest.raises(ModelFileError, match="describes no model"):
            MissCNF.load(folder / "wrong")
