"""What the two distributions hold: everything that they need, and nothing of each other's."""

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel_of(tmp_path_factory):
    """Builds the wheel of a folder of the repository, offline, and returns the names in it."""
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("setuptools, which builds wheels, is not installed here")

    def build(folder):
        out = tmp_path_factory.mktemp("wheel")
        # From a copy, so that nothing is left in the tree.
        copy = tmp_path_factory.mktemp("source")
        tracked = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        listed = subprocess.run(tracked, cwd=folder, capture_output=True, check=False)
        if listed.returncode != 0:
            pytest.skip("this is not a clone, so what belongs to it cannot be told")
        for name in filter(None, listed.stdout.decode().split("\0")):
            if (folder / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                (copy / name).write_bytes((folder / name).read_bytes())
        words = ["wheel", "--no-build-isolation", "--no-deps", "--no-index", "-q", "-w", str(out)]
        done = subprocess.run(
            [sys.executable, "-m", "pip", *words, str(copy)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        (wheel,) = out.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            return set(archive.namelist())

    return build


def modules(folder):
    """Returns the files of a package as a wheel names them."""
    return {str(path.relative_to(folder.parent)) for path in folder.rglob("*.py")}


@pytest.mark.slow
def test_the_wheel_of_misscnf(wheel_of):
    names = wheel_of(ROOT)
    assert modules(ROOT / "misscnf") <= names
    needed = {"py.typed", "data/nhefs.csv", "report/page.html", "report/style.css"}
    needed |= {f"studio/static/{name}" for name in ("index.html", "app.js", "style.css")}
    assert {f"misscnf/{name}" for name in needed} <= names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"misscnf"}


@pytest.mark.slow
def test_the_wheel_of_the_study(wheel_of):
    names = wheel_of(ROOT / "study")
    assert modules(ROOT / "study" / "misscnf_study") <= names
    assert "misscnf_study/published.csv" in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"misscnf_study"}
