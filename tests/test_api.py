"""The public face: docs/api.md lists what is public, and the code agrees."""

import ast
import dataclasses
import doctest
import functools
import importlib
import inspect
import itertools
import re
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest

import misscnf

PAGE = Path(__file__).parents[1] / "docs" / "api.md"


def listed():
    """Returns the names under each module's heading of the page."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"## `([\w.]+)`", line):
            names = found.setdefault(heading[1], [])
        elif row := re.match(r"\| `(\w+)` \| \S", line):
            names.append(row[1])
    return found


def imported(module):
    """Returns a module; one that stands on another package is skipped where that is missing."""
    if module == "misscnf.dowhy":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pytest.importorskip("dowhy", reason="dowhy is not installed")
            return importlib.import_module(module)
    return importlib.import_module(module)


def verbs():
    """Returns the verbs of the front door, which most people meet first."""
    for cls in (misscnf.MissCNF, misscnf.MissCNFImputer):
        for name in dir(cls):
            member = getattr(cls, name)
            own = (getattr(member, "__module__", None) or "").startswith("misscnf")
            if own and inspect.isroutine(member) and not name.startswith("_"):
                yield "misscnf", cls.__name__, name


PUBLIC = listed()
NAMES = [(module, name) for module, names in PUBLIC.items() for name in names]


def test_the_page_names_the_public_modules():
    assert list(PUBLIC) == [
        "misscnf",
        "misscnf.model",
        "misscnf.mechanisms",
        "misscnf.plots",
        "misscnf.dowhy",
        "misscnf.draws",
        "misscnf.cli.plugin",
    ]
    assert len(PUBLIC["misscnf"]) <= 24


@pytest.mark.parametrize("module", PUBLIC)
def test_the_page_lists_what_a_module_exports(module):
    assert sorted(PUBLIC[module]) == sorted(imported(module).__all__)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda word: word)
def test_a_public_name_says_what_it_is(module, name):
    found = getattr(imported(module), name)
    if inspect.isclass(found) or inspect.isfunction(found):
        assert found.__doc__
    else:  # a constant, or the name of a type
        assert documented(name)


SHOWN_BY_OTHERS = {"GraphLike", "PRESETS", "Intervention", "Parents", "Growth"}
"""Types and constants, which have no docstring of their own that could run."""
CALLED = [*NAMES, *((module, f"{cls}.{verb}") for module, cls, verb in verbs())]


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name"), CALLED, ids=lambda word: word)
def test_a_public_name_shows_itself(module, name):
    """By an example that runs: its own, or that of one of its methods."""
    if name in SHOWN_BY_OTHERS:
        assert documented(name)
        return
    found = functools.reduce(getattr, name.split("."), imported(module))
    own = vars(found).values() if inspect.isclass(found) else ()
    texts = map(inspect.getdoc, [found, *(getattr(member, "__func__", member) for member in own)])
    assert any(doctest.DocTestParser().get_examples(text or "") for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name"), CALLED, ids=lambda word: word)
def test_a_public_name_says_what_it_takes_and_returns(module, name):
    found = functools.reduce(getattr, name.split("."), imported(module))
    if name in SHOWN_BY_OTHERS:
        return
    told = inspect.getdoc(found) or ""
    takes = [] if inspect.isabstract(found) else inspect.signature(found).parameters
    takes = set(takes) - {"self", "args", "kwargs"}
    assert takes - explained(found, told) == set()
    if not inspect.isclass(found) and inspect.signature(found).return_annotation != "None":
        assert told.startswith("Returns") or "\nReturns:\n" in told


def explained(found, told):
    """Returns what a docstring, or a text below a field, says something about."""
    block = re.search(r"^(?:Arguments|Attributes):\n((?: +.*\n|\n)*)", told + "\n", re.MULTILINE)
    heads = re.findall(r"^    ([\w, ]+):", block[1], re.MULTILINE) if block else []
    names = {name for head in heads for name in head.split(", ")}
    if dataclasses.is_dataclass(found) or hasattr(found, "_fields"):
        for cls in inspect.getmro(found)[:-1]:
            names |= told_fields(cls)
    return names


def told_fields(cls):
    """Returns the fields of a class with a text below them."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError):  # not written in Python
        return set()
    return {
        field.target.id
        for field, after in itertools.pairwise(tree.body)
        if isinstance(field, ast.AnnAssign)
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    }


def documented(name):
    """Whether a string follows the assignment of a constant, wherever it is made."""
    for path in Path(misscnf.__file__).parent.rglob("*.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for statement, after in itertools.pairwise(body):
            targets = getattr(statement, "targets", [getattr(statement, "target", None)])
            if [getattr(target, "id", None) for target in targets] == [name]:
                return isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    return False


def test_the_names_of_the_package_are_there_before_they_are_imported():
    code = "import misscnf, sys; print(*dir(misscnf)); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, modules = (set(line.split()) for line in done.stdout.splitlines())
    assert set(misscnf.__all__) <= names
    assert modules.isdisjoint({"torch", "pandas", "numpy"})


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(AttributeError, match="'misscnf' has no attribute 'Miss'"):
        misscnf.Miss  # noqa: B018


def test_the_version_is_that_of_the_distribution():
    about = (Path(misscnf.__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{misscnf.__version__}"' in about
