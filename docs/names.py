"""The pages of public names, and the links that lead to them.

A class has a table of its methods before its full text, a module one of its names. Docstrings say
`CausalGraph.read` or docs/hidden.md, and pages `model.effect`: each becomes a link to its page.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref

__all__ = ["PUBLIC_MODULES", "public_names", "module_pages", "methods"]
__all__ += ["target_of", "as_restructured_text", "plain_signature", "public_bases", "link_names"]

ROOT = Path(__file__).parent.parent

PUBLIC_MODULES = (
    "misscnf",
    "misscnf.model",
    "misscnf.mechanisms",
    "misscnf.plots",
    "misscnf.dowhy",
    "misscnf.draws",
    "misscnf.cli.plugin",
)
"""Whose `__all__` is the reference; docs/api.md lists the same."""

ELSEWHERE = ("BaseEstimator", "TransformerMixin", "Module", "Exception", "ValueError", "tuple")
"""Bases whose members are documented by their own packages."""

SCIKIT_LEARN = ("get_metadata_routing", "set_fit_request", "set_score_request")
SCIKIT_LEARN += ("set_transform_request", "set_output")

VERBS = ("fit", "check", "effect", "curve", "risk", "sensitivity", "counterfactual", "sample")
VERBS += ("impute", "log_prob", "summary", "plain_estimates", "structural_model", "save", "load")
"""Methods in the order of an analysis; others follow, and properties come last."""

ANSWERS = ("Effect", "Risks", "Pooled", "Sensitivity", "Report", "PanelReport", "FittedReport")
"""What verbs return. Nobody constructs one, so that its page shows no constructor."""

OWNERS = {"model": "MissCNF", "effect": "Effect", "report": "Report", "plots": "plots"}
"""What a variable of this name stands for in prose, such as `model.effect`."""


# ------------------------------------------------------------------------------------ the pages


@functools.cache
def public_names(module: str) -> tuple[str, ...]:
    """Returns what a public module exports; none where it is not there."""
    try:
        return tuple(importlib.import_module(module).__all__)
    except ModuleNotFoundError:
        return ()


def module_pages(module: str) -> Iterator[tuple[str, str]]:
    """Yields the pages of a public module: one a name of `misscnf`, one for all of another."""
    names = public_names(module)
    if not names:
        return
    found = importlib.import_module(module)
    if module == "misscnf":
        for name in names:
            members = _table(f"{module}.{name}", methods(module, name))
            yield f"api/{module}.{name}.md", f"# {name}\n\n{members}{_entry(module, name)}"
        return
    about = (inspect.getdoc(found) or "").splitlines()[0]
    rows = {name: _first_sentence(_words(found, name)) for name in names}
    entries = "\n\n".join(f"## {name}\n\n{_entry(module, name)}" for name in names)
    yield f"api/{module}.md", f"# {module}\n\n{about}\n\n{_table(module, rows)}{entries}"


def _table(owner: str, told: dict[str, str]) -> str:
    """Returns a table of names that lead to their entries, each with its first sentence."""
    if not told:
        return ""
    rows = [f"| {{py:obj}}`~{owner}.{name}` | {words} |" for name, words in told.items()]
    return "\n".join(["| name | in short |", "|---|---|", *rows]) + "\n\n"


@functools.cache
def methods(module: str, name: str) -> dict[str, str]:
    """Returns the methods and properties of a public class, each with its first sentence."""
    found = getattr(importlib.import_module(module), name)
    if not inspect.isclass(found):
        return {}
    told: dict[str, str] = {}
    last: list[str] = []
    for base in found.__mro__:
        if base.__name__ in (*ELSEWHERE, "object"):
            break
        for name, member in vars(base).items():
            shown = not name.startswith("_") and name not in SCIKIT_LEARN and name not in told
            kind = (property, functools.cached_property, classmethod, staticmethod)
            if shown and (inspect.isfunction(member) or isinstance(member, kind)):
                told[name] = _first_sentence(inspect.getdoc(getattr(member, "__func__", member)))
                last += [name] * isinstance(member, kind[:2])
    order = [*VERBS, *(name for name in told if name not in (*VERBS, *last)), *last]
    return {name: told[name] for name in order if name in told}


def _first_sentence(told: str | None) -> str:
    """Returns the first sentence of a text, as a cell of a table."""
    paragraph = re.sub(r"\s+", " ", (told or "").split("\n\n")[0])
    return re.split(r"(?<=\.) ", paragraph)[0].replace("|", r"\|")


def _entry(module: str, name: str) -> str:
    """Returns the directive that documents a name."""
    found = getattr(importlib.import_module(module), name)
    if inspect.isclass(found) and not isinstance(found, type(int | str)):
        options = [":members:", f":inherited-members: {', '.join(ELSEWHERE)}, NamedTuple"]
        if any(base.__name__ in _classes() for base in found.__bases__):
            options.append(":show-inheritance:")
        options.append(f":exclude-members: {', '.join(SCIKIT_LEARN)}")  # documented there
        return _directive("autoclass", f"{module}.{name}", options)
    if inspect.isfunction(found):
        return _directive("autofunction", f"{module}.{name}", [])
    return f"`{module}.{name}`\n\n{_constant_words(name)}"


def _directive(kind: str, name: str, options: list[str]) -> str:
    if name.count(".") > 1:
        options = [*options, ":no-contents-entry:"]  # has a heading
    lines = [f".. {kind}:: {name}", *(f"   {option}" for option in options)]
    return "```{eval-rst}\n" + "\n".join(lines) + "\n```\n"


def _words(module: object, name: str) -> str | None:
    """Returns the docstring of a name, or the text that follows its assignment."""
    found = getattr(module, name)
    own = inspect.isfunction(found) or inspect.isclass(found)
    return inspect.getdoc(found) if own else _constant_words(name)


def _constant_words(name: str) -> str:
    """Returns the text that follows the assignment of a constant, wherever that is."""
    for path in sorted((ROOT / "misscnf").rglob("*.py")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for statement, after in itertools.pairwise(body):
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            if [getattr(target, "id", None) for target in targets] != [name]:
                continue
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                return inspect.cleandoc(str(after.value.value))
    return ""


# ------------------------------------------------------------------------- what autodoc is told


def plain_signature(
    app: object, what: str, name: str, found: object, options: object, *signature: str | None
) -> tuple[str, str] | None:
    """Leaves out the constructor of what is an answer; called by autodoc for every signature."""
    return ("", "") if name.removeprefix("misscnf.") in ANSWERS and what == "class" else None


def public_bases(
    app: object, name: str, found: type, options: object, bases: list[type | str]
) -> None:
    """Leaves out bases that are not public; called by autodoc for every class."""
    bases[:] = [base for base in bases if getattr(base, "__name__", "") in _classes()]


def as_restructured_text(
    app: object, what: str, name: str, found: object, options: object, lines: list[str]
) -> None:
    """Makes reStructuredText of what docstrings have of Markdown, and links of what they name.

    Tables become literal blocks, attributes a list of definitions with short types, and the
    names of pages links. Called by autodoc for every docstring.
    """
    text = re.sub(r"`?\bdocs/([\w/]+)\.md`?", r":doc:`/\1`", "\n".join(lines))
    made: list[str] = []
    for part in re.split(r"\n\n", text):
        rows = part.splitlines()
        if rows and all(row.lstrip().startswith("|") for row in rows):
            indent = rows[0][: len(rows[0]) - len(rows[0].lstrip())]
            part = textwrap.indent(
                "::\n\n" + textwrap.indent(textwrap.dedent(part), "    "), indent
            )
        elif rows and rows[0].strip() == "Attributes:":
            part = _definitions(rows, found)
        made.append(part)
    lines[:] = "\n\n".join(made).splitlines()


def _definitions(rows: list[str], found: object) -> str:
    """Returns attributes as definitions, each with its type as the code writes it."""
    types: dict[str, str] = {}
    for base in reversed(getattr(found, "__mro__", ())):
        types |= {name: str(word) for name, word in inspect.get_annotations(base).items()}
    made = [".. rubric:: Attributes", ""]
    for row in textwrap.dedent("\n".join(rows[1:])).splitlines():
        if named := re.match(r"(\w+): (.*)", row):
            shown = types.get(named[1], "")
            made.append(f"``{named[1]}``" + (f" : *{shown}*" if shown else ""))
            row = named[2]
        made.append("    " + row.strip())
    return "\n".join(made)


# ------------------------------------------------------------------------------------ the links


@functools.cache
def _classes() -> dict[str, str]:
    """Returns where each public name stands that is a class."""
    found: dict[str, str] = {}
    for module in PUBLIC_MODULES:
        for name in public_names(module):
            if inspect.isclass(getattr(importlib.import_module(module), name)):
                found.setdefault(name, f"{module}.{name}")
    return found


def target_of(word: str) -> str | None:
    """Returns what a word of code names: `MissCNF.effect`, `model.effect(…)`, `pool(…)`."""
    name, bracket, _ = word.removeprefix("misscnf.").partition("(")
    if not re.fullmatch(r"[A-Za-z]\w*(\.\w+)*", name):
        return None
    first, _, rest = name.partition(".")
    first = OWNERS.get(first, first) if rest else first
    if first == "plots":
        return f"misscnf.plots.{rest}" if rest in public_names("misscnf.plots") else None
    if not rest and first[0].islower():
        asked = bracket or "_" in first or word.startswith("misscnf.")
        return f"misscnf.{first}" if asked and first in public_names("misscnf") else None
    owner = _classes().get(first)
    if owner is None or not rest:
        return owner
    if rest in methods(*owner.rsplit(".", 1)):
        return f"{owner}.{rest}"
    return (
        owner if rest.endswith("_") else None
    )  # what a fit leaves stands on the page of its class


def link_names(app: object, document: nodes.document) -> None:
    """Makes links of the public names in a page; called by Sphinx for every page it has read."""
    for found in list(document.findall(nodes.literal)):
        above = found.parent
        while above is not None and not isinstance(
            above, nodes.title | nodes.reference | pending_xref
        ):
            above = above.parent
        target = None if above is not None else target_of(found.astext())
        if target is not None:
            link = pending_xref(
                "",
                refdomain="py",
                reftype="obj",
                reftarget=target,
                refexplicit=True,
                refwarn=False,
            )
            found.replace_self(link)
            link += found
