"""Causal graphs written as text, read into nodes, edges, blocks and latent nodes, as they come.

Seven ways of writing are told apart by their content, with a file's suffix as a hint:

- DOT: ``digraph g { a -> b -> c; {a d} -> e; "blood pressure" [label="x"] }``. Attributes and
  default statements are skipped, subgraphs are flattened, but for ``subgraph cluster_x {a d}``
  without arrows inside, which is the block x. Ports (``a:n``) are not read.
- dagitty: ``dag { a -> b <- c; d [exposure, pos="0,1"]; u [latent]; a <-> d }``.
- GML, by networkx.
- JSON: ``{"child": ["parent", ...]}``.
- CSV: an edge per line under a header with the columns ``cause`` and ``effect``.
- lavaan: regressions ``y ~ x + b1*z``, measurement models ``f =~ x1 + x2`` and covariances
  ``x ~~ y``; intercepts and variances are accepted and add no edge. A covariance that is not
  written is none, also between hidden causes.
- plain arrows: ``a -> b; b <- c, d -> e -> f``, with ``→`` and ``←`` too; a lone name is a node
  without edges and ``a, b -> c`` gives both edges. Semicolons and line ends separate. A comma
  does as well between parts that all have an arrow. Braces make a block, among whose members no
  arrow is claimed: ``{a, b} -> c`` is both edges and a block, ``w = {a, b}; w -> c`` gives it a
  name. Tiers are ``a, b < c, d < e``: each is a block, and a cause of all later ones.

Quotes or backticks hold names with spaces, dots or signs: ``"my dose" -> y``.

Graphs over time have an index behind the name, ``L[t-1] -> A[t]`` (`graph.template`), in every way
of writing; in DOT and dagitty a space before the bracket makes it an attribute.

The indicator of a loss, ``missing(y)``, is a name like any other; DOT, GML and dagitty want it in
quotes, and are read without too.

Hidden causes (`graph.latents`) are nodes with the attribute ``latent``, ``unobserved`` or
``observed="no"``, in DOT, dagitty and GML; ``latent=3`` is a class of three levels. Between two
nodes, ``a <-> b`` or ``a ~~ b`` is a hidden cause of both.

A mark that would change the meaning if it were skipped is refused: arrows that are not directed,
DOT's ``dir=both``, lavaan terms that are fixed or held equal. Whether the edges form a causal
graph at all (names, cycles) is for `misscnf.graph.dag` to check.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx

from misscnf.errors import InputError
from misscnf.graph.latents import hidden_cause

__all__ = ["read_text", "names_a_file", "marked_latent"]


class Parsed(NamedTuple):
    """What a text says."""

    nodes: list[str]
    edges: list[tuple[str, str]]
    blocks: dict[str, list[str]] = {}  # noqa: RUF012 - never changed
    latent: dict[str, int | None] = {}  # noqa: RUF012 - likewise


_QUOTED = r'(?:"(?:\\.|[^"\\])*"|`[^`\n]+`)'
# A hash inside a word is left alone: better an unreadable name than half a line lost.
_COMMENT = re.compile(rf"{_QUOTED}|//[^\n]*|(?<![^\s;{{}}])#[^\n]*|/\*.*?\*/", re.DOTALL)


def read_text(text: str, suffix: str = "") -> Parsed:
    """Reads a graph from its text; see the module's description for what is understood.

    Args:
        text: The text itself.
        suffix: The suffix of the file it came from, believed where the text leaves a doubt.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    bare = _without_comments(text)
    readers = [reader for reader, signature in _SIGNATURES.items() if signature.match(bare)]
    if suffix in _USUAL_READERS:
        readers.append(_USUAL_READERS[suffix])
    unquoted = re.sub(_QUOTED, "", bare)
    is_lavaan = re.search(r"~|:=|==", unquoted) and not re.search(r"->|<-|[→←↔]", unquoted)
    readers.append(_read_lavaan if is_lavaan else _read_plain)
    try:
        return readers[0](text)
    except RecursionError:
        raise InputError(
            "the graph has brackets or braces nested too deeply to be read; a graph needs a few "
            "levels at most."
        ) from None


def names_a_file(text: str) -> bool:
    """Says whether a string is a path, existing or plainly meant as one, and not a graph."""
    if os.path.isfile(text):
        return True
    if "\n" in text.strip() or re.search(r"->|<-|[→←↔{;]|\s~", text):
        return False
    return Path(text.strip()).suffix.lower() in (*_USUAL_READERS, ".txt")


def _without_comments(text: str) -> str:
    """Blanks comments but keeps their line ends, so that lines keep their numbers."""
    return _COMMENT.sub(lambda m: m[0] if m[0][0] in '"`' else " " + "\n" * m[0].count("\n"), text)


def _unreadable(number: int, line: str, why: str, hint: str = "") -> InputError:
    shown = line.strip() if len(line.strip()) <= 80 else f"{line.strip()[:79]}…"
    return InputError(f"line {number} of the graph cannot be read: {shown!r} ({why}){hint}.")


_TOKEN = re.compile(
    rf"""(?P<quoted>{_QUOTED})
    | (?P<value> =\s* (?: {_QUOTED} | <(?:[^<>]|<[^<>]*>)*> | [^\s,;="<>\[\]{{}}]+ ))
    | (?P<arrow> [@<]?-{{1,2}}[@>]? | [→←↔] | ~~)
    | (?P<name> (?: (?:missing|hidden|mean|ever|count|since|last)\([^()"]+\)
                  | [\w.]+ (?:-[\w.]+)* )
                (?: \[[ ]* (?:[A-Za-z]|\d+) [ ]* (?:[-+*][ ]*\w+[ ]*)? \] )?)  # L[t-1]
    | (?P<mark> \S)""",
    re.VERBOSE,
)
_FORWARD, _BACKWARD, _BOTH = ("->", "-->", "→"), ("<-", "<--", "←"), ("<->", "<-->", "↔", "~~")


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def _tokens(text: str) -> list[_Token]:
    bare = _without_comments(text)
    tokens, line, counted = [], 1, 0
    for match in _TOKEN.finditer(bare):
        line += bare.count("\n", counted, match.start())
        counted = match.start()
        kind, found = str(match.lastgroup), match[0]
        if kind == "quoted":
            found = found[1:-1].replace('\\"', '"')
        tokens.append(_Token(kind, found, line))
    return tokens


class _ArrowReader:
    """Reads statements such as ``a -> {b c} <- d [attributes]`` from left to right."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.keywords: tuple[str, ...] = ()  # words that set defaults and name no node
        self.tokens = _tokens(text)
        self.at = 0
        self.nodes: dict[str, None] = {}
        self.edges: list[tuple[str, str]] = []
        self.braces: list[list[str]] = []
        self.blocks: dict[str, list[str]] = {}
        self.latent: dict[str, int | None] = {}

    def peek(self, ahead: int = 0) -> _Token:
        """Returns a token without taking it; past the last one, a token of the kind 'end'."""
        if self.at + ahead < len(self.tokens):
            return self.tokens[self.at + ahead]
        return _Token("end", "", self.tokens[-1].line if self.tokens else 1)

    def take(self, *wanted: str) -> _Token | None:
        """Takes the next token if it is one of these marks, or of one of these kinds."""
        token = self.peek()
        if token.kind in wanted or (token.kind == "mark" and token.text in wanted):
            self.at += 1
            return token
        return None

    def unexpected(self) -> InputError:
        token = self.peek()
        why = f"unexpected {token.text!r}" if token.kind != "end" else "it ends too early"
        hint = ""
        if token.kind == "name":
            hint = '; a name with spaces stands in quotes, such as "blood pressure"'
        elif token.text == "(":
            hint = "; functions of a history are mean, ever, count, since and last"
        return _unreadable(token.line, self.lines[token.line - 1], why, hint)

    def block(self, *separators: str) -> list[str]:
        """Reads statements up to the closing brace and returns the nodes they mention."""
        mentioned: list[str] = []
        while not self.take("}"):
            if self.take(*separators):
                continue
            word, following = self.peek(), self.peek(1)
            if word.kind in ("name", "quoted") and following.kind == "value":  # as in rankdir=LR
                self.at += 2
            elif word.kind == "name" and word.text.lower() in self.keywords:
                self.at += 1
                self.read_attributes(f"the default for each {word.text}")
            else:
                mentioned += self.statement()
        return list(dict.fromkeys(mentioned))

    def statement(self) -> list[str]:
        """Reads a lone end or a chain of them and returns the nodes it mentions."""
        ends, arrows = self.chain()
        for left, arrow, right in zip(ends, arrows, ends[1:], strict=False):
            self.connect(left, arrow, right)
        return list(itertools.chain.from_iterable(ends))

    def chain(self) -> tuple[list[list[str]], list[_Token]]:
        """Reads ends and the arrows between them."""
        ends, arrows = [self.end()], list[_Token]()
        while arrow := self.take("arrow"):
            arrows.append(arrow)
            ends.append(self.end())
        mentioned = list(itertools.chain.from_iterable(ends))
        owner = "node" if len(mentioned) == 1 else "the edge of"
        alone = mentioned[0] if len(mentioned) == 1 else None
        self.read_attributes(f"{owner} {' '.join(mentioned)!r}", alone)
        return ends, arrows

    def end(self) -> list[str]:
        """Reads what an arrow can touch: a node, or a group in braces."""
        name = None
        if self.peek().text.lower() == "subgraph" and self.peek(1).kind != "arrow":
            self.at += 1
            name = self.take("name", "quoted")
        if self.take("{"):
            members = self.block(";", ",")
            self.braces.append(members)
            if name is not None and name.text.startswith("cluster_"):
                self.blocks[name.text.removeprefix("cluster_")] = members
            return members
        token = self.take("name", "quoted")
        if token is None:
            raise self.unexpected()
        self.nodes[token.text] = None
        return [token.text]

    def connect(self, left: list[str], arrow: _Token, right: list[str]) -> None:
        pairs = list(itertools.product(left, right))
        if arrow.text in _FORWARD:
            self.edges += pairs
        elif arrow.text in _BACKWARD:
            self.edges += [(cause, effect) for effect, cause in pairs]
        else:
            one, two = " ".join(left), " ".join(right)
            if arrow.text not in _BOTH:
                raise InputError(
                    f"'{one} {arrow.text} {two}' on line {arrow.line} is refused: it does not say "
                    f"which is the cause; write {one} -> {two} or {one} <- {two}."
                )
            for pair in pairs:
                if pair[0] == pair[1]:
                    continue  # a variance
                cause = hidden_cause(*pair)
                self.latent[cause] = None
                self.edges += [(cause, effect) for effect in pair]

    def read_attributes(self, owner: str, node: str | None = None) -> None:
        """Passes over ``[key=value, key]``, except for what changes the meaning of the graph."""
        while self.take("["):
            while not self.take("]"):
                key = self.peek()
                self.at += 1
                value = self.take("value")
                said = re.sub(r'[\s"]', "", key.text + (value.text if value else "")).lower()
                if key.kind == "end":
                    raise self.unexpected()
                latent = _latent_mark(said)
                if latent and node is None:
                    raise InputError(
                        f"{owner} is marked as {said!r}, which is for single nodes; write it "
                        f"behind each node that nobody measures."
                    )
                if latent and node is not None:
                    classes = latent["classes"]
                    self.latent[node] = None if classes is None else int(classes)
                if said in ("dir=both", "dir=none", "dir=back"):
                    raise InputError(
                        f"{owner} has {said!r}, which undoes its arrow; leave it out."
                    )


def _read_braced(text: str) -> Parsed:
    """Reads DOT and dagitty, which differ in the word before the brace."""
    reader = _ArrowReader(text)
    if reader.peek().text.lower() == "strict":
        reader.at += 1
    kind = reader.peek().text.lower()
    if kind in ("graph", "pdag", "mag", "pag"):
        raise InputError(
            f"a graph that begins with {kind!r} leaves the direction of its edges open; write a "
            "directed one, as 'digraph { a -> b }' or 'dag { a -> b }'."
        )
    reader.at += 1
    reader.take("name", "quoted")
    if kind not in ("digraph", "dag") or not reader.take("{"):
        plain = "plain arrows, as a -> b, go into a .txt file"
        expected = f"expected it to begin with 'digraph {{' or 'dag {{'; {plain}"
        raise _unreadable(1, reader.lines[0], expected)
    reader.keywords = ("node", "edge", "graph") if kind == "digraph" else ()
    reader.block(";")
    if reader.peek().kind != "end":
        raise reader.unexpected()
    # Arrows between the members of a cluster are claims: it is a box around them, and no more.
    blocks = {
        name: members
        for name, members in reader.blocks.items()
        if not any(set(edge) <= set(members) for edge in reader.edges)
    }
    return Parsed(list(reader.nodes), reader.edges, blocks, reader.latent)


def _read_plain(text: str) -> Parsed:
    reader = _PlainReader(text)
    for sentence in _sentences(reader.tokens):
        reader.tokens, reader.at = sentence, 0
        if any(token[:2] == ("mark", "<") for token in sentence):
            reader.tiers()
        elif sentence and not reader.definition():
            reader.sentence()
    blocks = reader.blocks | reader.nameless_blocks()
    # The name of a block stands for its members, wherever it is.
    nodes = [name for name in reader.nodes if name not in blocks]
    return Parsed(nodes, reader.edges, blocks, reader.latent)


class _PlainReader(_ArrowReader):
    """Reads sentences of plain arrows, in which braces make blocks and commas lists."""

    def sentence(self) -> None:
        """Reads ``a, b -> c, d``, or statements that all have an arrow of their own."""
        parts = [self.chain()]
        while self.take(",") and self.peek().kind != "end":
            parts.append(self.chain())
        if self.peek().kind != "end":
            raise self.unexpected()
        pointing = [at for at, (_, arrows) in enumerate(parts) if arrows]
        if len(pointing) == 1:  # the others are listed beside its first or its last end
            at, (ends, arrows) = pointing[0], parts[pointing[0]]
            ends[0] = [*(name for others, _ in parts[:at] for name in others[0]), *ends[0]]
            ends[-1] += [name for others, _ in parts[at + 1 :] for name in others[0]]
            parts = [(ends, arrows)]
        elif pointing and len(pointing) < len(parts):
            why = "the commas leave open what the arrows are for; write a line for each"
            raise _unreadable(self.tokens[0].line, self.lines[self.tokens[0].line - 1], why)
        for ends, arrows in parts:
            for left, arrow, right in zip(ends, arrows, ends[1:], strict=False):
                self.connect(left, arrow, right)

    def listed(self) -> list[str]:
        """Reads names that commas part."""
        found = self.end()
        while self.take(","):
            found += self.end()
        return found

    def definition(self) -> bool:
        """Reads ``w = {a, b}``, if that is what stands here."""
        name, equals = self.peek(), self.peek(1)
        if name.kind not in ("name", "quoted") or equals[:2] != ("mark", "="):
            return False
        self.at += 2
        if self.peek()[:2] != ("mark", "{"):
            raise self.unexpected()
        self.blocks[name.text] = self.end()
        if self.peek().kind != "end":
            raise self.unexpected()
        return True

    def tiers(self) -> None:
        """Reads ``a, b < c, d < e``."""
        levels = [self.listed()]
        while self.take("<"):
            levels.append(self.listed())
        if self.peek().kind != "end":
            raise self.unexpected()
        self.braces += levels
        for early, late in itertools.combinations(levels, 2):
            self.edges += itertools.product(early, late)

    def nameless_blocks(self) -> dict[str, list[str]]:
        """Returns what stands in braces; within braces that are a block already, it is a group."""
        taken = [set(members) for members in self.blocks.values()]
        found: dict[str, list[str]] = {}
        for members in sorted(self.braces, key=len, reverse=True):
            if not any(set(members) <= known for known in taken):
                taken.append(set(members))
                found[brace(members)] = members
        return found


def brace(names: Sequence[str]) -> str:
    """Returns what a block without a name of its own is called, such as "{a, b, c, …}"."""
    return f"{{{', '.join([*names[:3], *['…'] * (len(names) > 3)])}}}"


def _sentences(tokens: Iterable[_Token]) -> Iterator[list[_Token]]:
    """Cuts at semicolons and line ends, except that a comma goes on over the end of its line."""
    sentence: list[_Token] = []
    for token in tokens:
        last = sentence[-1] if sentence else token
        semicolon = token[:2] == ("mark", ";")
        if semicolon or (token.line > last.line and last[:2] != ("mark", ",")):
            yield sentence
            sentence = []
        if not semicolon:
            sentence.append(token)
    yield sentence


_LAVAAN_REFUSED = {
    "<~": "it defines a composite, which is no cause; draw a node that is latent=[...] instead",
    ":=": "it defines a parameter; only regressions such as y ~ x + z say who causes whom",
    "==": "it constrains parameters; only regressions such as y ~ x + z say who causes whom",
}


def _read_lavaan(text: str) -> Parsed:
    nodes: dict[str, None] = {}
    edges: list[tuple[str, str]] = []
    latent: dict[str, int | None] = {}
    labels: set[str] = set()
    for number, line in _lavaan_sentences(text):
        operator = re.search(r"=~|<~|~\*~|~~|:=|==|~|[<>|%]", line)
        if operator is None or operator[0] not in ("~", "~~", "=~"):
            why = _LAVAAN_REFUSED.get(operator[0] if operator else "", "expected y ~ x + z")
            raise _unreadable(number, line, why)
        left = _lavaan_names(number, line, line[: operator.start()])
        right = _lavaan_names(number, line, line[operator.end() :])
        if not left:
            raise _unreadable(number, line, "no variable on its left side")
        _check_lavaan_free(number, line, operator[0], line[operator.end() :], labels)
        nodes |= dict.fromkeys([*left, *right])
        pairs = [(one, other) for one in left for other in right]
        if operator[0] == "~":
            edges += [(cause, effect) for effect, cause in pairs]
        elif operator[0] == "=~":
            edges += pairs
            latent |= dict.fromkeys(left)
        else:
            for one, other in pairs:
                if one != other:
                    cause = hidden_cause(one, other)
                    latent[cause] = None
                    edges += [(cause, one), (cause, other)]
    return Parsed(list(nodes), edges, {}, latent)


def _check_lavaan_free(number: int, line: str, operator: str, side: str, labels: set[str]) -> None:
    """Refuses what ties parameters: a label seen before, a number but for one loading a factor."""
    modifiers = [term.rsplit("*", 1)[0].strip() for term in side.split("+") if "*" in term]
    fixed = [one for one in modifiers if re.fullmatch(r"-?[\d.]+(e-?\d+)?", one)]
    if len(fixed) > (operator == "=~") and operator != "~~":  # variances of factors are one anyway
        raise _unreadable(number, line, f"{fixed[-1]!r} fixes what is estimated; leave it out")
    for label in modifiers:
        if label in labels:
            raise _unreadable(number, line, f"{label!r} again holds two terms equal; leave it out")
        if re.fullmatch(r"[\w.]*[^\W\d][\w.]*", label) and label != "NA":
            labels.add(label)


def _lavaan_sentences(text: str) -> list[tuple[int, str]]:
    """Cuts at semicolons and line ends, except next to an operator that wants another term."""
    sentences: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        for part in filter(None, map(str.strip, re.sub(r"[#!].*", "", line).split(";"))):
            if sentences and (part[0] in "+*" or sentences[-1][1][-1] in "+*~"):
                first, begun = sentences.pop()
                sentences.append((first, f"{begun} {part}"))
            else:
                sentences.append((number, part))
    return sentences


def _lavaan_names(number: int, line: str, side: str) -> list[str]:
    """Lists the variables of ``b1*x + z + 1``, without modifiers and without the intercept."""
    names = []
    for term in side.split("+"):
        *modifier, name = (part.strip() for part in term.rsplit("*", maxsplit=1))
        if name == "1":
            continue
        if not re.fullmatch(r"missing\([\w.]+\)|[\w.]*[^\W\d][\w.]*", name):
            raise _unreadable(number, line, f"{name!r} is not a variable")
        if modifier and re.fullmatch(r"0+\.?0*", modifier[0]):
            raise _unreadable(number, line, "a term fixed at zero is no edge; leave it out")
        names.append(name)
    return names


def _read_gml(text: str) -> Parsed:
    try:
        graph = nx.parse_gml(text)
    except RecursionError:
        raise
    except Exception as error:  # networkx trips over bad text in many ways
        raise InputError(f"the GML text cannot be read: {error}.") from error
    if not graph.is_directed():
        raise InputError(
            "the GML graph is undirected, so its edges do not say which end is the cause; write "
            "'directed 1' after 'graph ['."
        )
    edges = [(str(u), str(v)) for u, v, *_ in graph.edges]
    latent = dict.fromkeys(map(str, marked_latent(graph)))
    return Parsed([str(name) for name in graph], edges, {}, latent)


def _latent_mark(said: str) -> re.Match[str] | None:
    """Reads an attribute that makes a node latent, with its number of classes if it has one."""
    number = r"(?:=(?:true|yes|(?P<classes>\d+)))?"
    return re.fullmatch(rf"(?:latent|unobserved){number}|observed=no", said)


def marked_latent(graph: nx.Graph) -> list[Any]:
    """Returns the nodes that a networkx graph marks as latent, as those of dowhy and pgmpy do."""
    said = set(getattr(graph, "latents", ()))
    for node, about in graph.nodes(data=True):
        words = (f"{key}={value}".lower() for key, value in about.items())
        if any(_latent_mark(re.sub("=1$", "", word)) for word in words):
            said.add(node)
    return [node for node in graph if node in said]


def _read_json(text: str) -> Parsed:
    try:
        parents = json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1]
        raise _unreadable(error.lineno, line, error.msg) from error
    if not isinstance(parents, dict):
        raise InputError('a graph in JSON is an object {"child": ["parent", ...]}.')
    for child, causes in parents.items():
        if not isinstance(causes, list):
            raise InputError(f"the parents of {child!r} must be a list of names, not {causes!r}.")
    edges = [(cause, child) for child in parents for cause in parents[child]]
    return Parsed(list(parents), edges)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes a JSON object of its pairs; json itself would silently keep the last of a name."""
    again = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if again:
        raise InputError(f"the name {again[0]!r} appears twice; list all its parents at once.")
    return dict(pairs)


def _read_csv(text: str) -> Parsed:
    rows = csv.reader(io.StringIO(text), skipinitialspace=True)
    header = [name.strip().lower() for name in next(rows, [])]
    if header.count("cause") != 1 or header.count("effect") != 1:
        raise InputError(
            f"a graph in CSV has the columns cause and effect, and its first line is {header}."
        )
    cause, effect = header.index("cause"), header.index("effect")
    edges = []
    for row in filter(None, rows):
        if len(row) <= max(cause, effect):
            raise _unreadable(rows.line_num, ",".join(row), "expected a cause and an effect")
        edges.append((row[cause].strip(), row[effect].strip()))
    return Parsed(list(dict.fromkeys(itertools.chain.from_iterable(edges))), edges)


_SIGNATURES: dict[Callable[[str], Parsed], re.Pattern[str]] = {
    _read_braced: re.compile(
        r'\s*(strict\s+)?(graph|digraph|dag|pdag|mag|pag)\s*("[^"]*"|[\w.-]+)?\s*\{', re.IGNORECASE
    ),
    _read_gml: re.compile(r"(?:.*\n)*?[^\S\n]*graph\s*\["),
    _read_json: re.compile(r'\s*\{\s*(?:"(?:\\.|[^"\\])*"\s*:|\}\s*$)'),
    _read_csv: re.compile(r'\s*"?cause"?\s*,\s*"?effect"?\s*(?:\n|$)', re.IGNORECASE),
}
_USUAL_READERS = {
    ".dot": _read_braced,
    ".gv": _read_braced,
    ".gml": _read_gml,
    ".csv": _read_csv,
    ".json": _read_json,
    ".lav": _read_lavaan,
}
