"""What a release says of itself is true."""

import re
import tomllib
from pathlib import Path

import yaml

import misscnf

ROOT = Path(__file__).parents[1]
ABOUT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_all_say_the_same_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    study = tomllib.loads((ROOT / "study" / "pyproject.toml").read_text(encoding="utf-8"))
    assert {ABOUT["version"], cited["version"], study["project"]["version"]} == {
        misscnf.__version__
    }
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[?{re.escape(misscnf.__version__)}\b", changes, re.MULTILINE)


def test_every_python_that_is_promised_is_tried():
    tried = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    promised = [line.split(":: ")[-1] for line in ABOUT["classifiers"] if ":: 3." in line]
    assert tried["jobs"]["tests"]["strategy"]["matrix"]["python"] == promised
    assert ABOUT["requires-python"] == f">={promised[0]}"


def test_what_development_installs_is_pinned():
    pins = {
        line.split("==")[0].lower()
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    }
    asked = ABOUT["dependencies"] + ABOUT["optional-dependencies"]["docs"]
    names = {re.match(r"[\w-]+", line)[0].lower() for line in asked}
    assert names - pins == set()


def test_forms_for_issues_can_be_read():
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert {"name", "description", "body"} <= form.keys(), path.name
