"""The study stands on the public face of misscnf alone, as any user's code would."""

import ast
import importlib
from pathlib import Path

import misscnf_study
import pytest

HOME = Path(misscnf_study.__file__).parent
MODULES = {str(path.relative_to(HOME)): path for path in sorted(HOME.rglob("*.py"))}
PUBLIC = ["misscnf", "misscnf.model", "misscnf.mechanisms", "misscnf.draws", "misscnf.cli.plugin"]
"""As docs/api.md has them, which a test of misscnf checks."""


def imported(path):
    """Returns what a module imports from misscnf, as (module, name)."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((str(node.module), alias.name) for alias in node.names)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_public_names_only(name):
    for module, wanted in imported(MODULES[name]):
        if module.partition(".")[0] == "misscnf":
            assert module in PUBLIC, f"{module} is private"
            assert wanted in [*importlib.import_module(module).__all__, "__version__"]


def test_the_study_uses_the_public_face():
    used = {module for path in MODULES.values() for module, _ in imported(path)}
    assert set(PUBLIC) <= used
