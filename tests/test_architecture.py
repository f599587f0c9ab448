"""The house rules that a machine can check."""

import ast
import functools
import importlib
import inspect
import re
import tokenize
import types
from pathlib import Path

import pytest

import misscnf

HOUSE = Path(misscnf.__file__).parent
MODULES = {str(path.relative_to(HOUSE)): path for path in sorted(HOUSE.rglob("*.py"))}


@pytest.fixture(params=MODULES)
def path(request):
    return MODULES[request.param]


def test_the_house_has_modules():
    assert {
        "graph/dag.py",
        "inference/elimination.py",
        "inference/likelihood.py",
    } <= MODULES.keys()


def test_a_module_opens_with_its_idea(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_a_module_says_what_is_public(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path.name == "__init__.py" and len(tree.body) == 1:
        return  # a package with nothing but its docstring has nothing to say
    assert "__all__" in _defined(tree)


def test_what_is_public_exists(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    values = [node.value for node in tree.body if _targets(node) == ["__all__"]]
    public = ast.literal_eval(values[0]) if values else []
    assert len(set(public)) == len(public)
    assert set(public) <= _defined(tree)


def test_a_public_method_says_what_it_does(path):
    """By its own docstring, or by that of the method that it overrides."""
    parts = path.relative_to(HOUSE.parent).with_suffix("").parts
    if parts[-1] == "dowhy":
        pytest.skip("it stands on another package; tests/test_dowhy.py asks for its docstrings")
    module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
    classes = [found for name, found in vars(module).items() if not name.startswith("_")]
    for cls in filter(inspect.isclass, classes):
        members = {**vars(cls)} if cls.__module__ == module.__name__ else {}
        for name, member in members.items():
            if not name.startswith("_") and isinstance(member, METHODS):
                assert inspect.getdoc(getattr(cls, name)), f"{cls.__name__}.{name}"


METHODS = types.FunctionType, property, classmethod, staticmethod, functools.cached_property


def _targets(node):
    """The names that a statement assigns to."""
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]


def _defined(tree):
    names = set()
    for node in tree.body:
        names.update(_targets(node))
        if isinstance(node, ast.If):  # of type checking: names that are imported when used
            names |= _defined(node)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


CONCRETE = re.compile(
    r"isinstance\([^)]*\b(Gaussian|Spline|Curve|Ordinal|Categorical|Count|Affine)\b"
)


@pytest.mark.parametrize("room", ["fitting", "inference", "queries"])
def test_nobody_asks_which_mechanism_it_is(room):
    """What a mechanism can do it says itself (`mechanisms.base`)."""
    asked = [
        f"{name}:{number}"
        for name, path in MODULES.items()
        if name.startswith(f"{room}/")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if CONCRETE.search(line)
    ]
    assert asked == []


CONSTANT = re.compile(r"_?[A-Z][A-Z_0-9]+(, [A-Z_]+)*(: [^=]+)? = ")


def test_module_constants_are_few():
    """Numbers that shape an answer are settings; constants are for technicalities."""
    found = [
        f"{name}: {line}"
        for name, path in MODULES.items()
        for line in path.read_text(encoding="utf-8").splitlines()
        if CONSTANT.match(line)
    ]
    assert len(found) < 60, "\n".join(found)


def test_nothing_is_called_mask(path):
    with tokenize.open(path) as file:
        names = [t for t in tokenize.generate_tokens(file.readline) if t.type == tokenize.NAME]
    called = [f"{t.string} (line {t.start[0]})" for t in names if _is_mask(t.string)]
    assert not called, f"say `observed`: {', '.join(called)}"


def _is_mask(name):
    return not {"mask", "masks", "masked"}.isdisjoint(name.lower().split("_"))
