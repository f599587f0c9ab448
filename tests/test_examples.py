"""The examples run as scripts, and what they print is near the truth that they print beside it."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NUMBER = r"(-?\d+\.\d+)"


def run(name):
    """Returns what a script prints, on one core and with warnings as errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def beside(text, pattern):
    """Returns the numbers of a line such as "effect: truth 1.00, misscnf 1.01"."""
    found = re.search(pattern.replace("#", NUMBER), text)
    assert found, f"{pattern} is not in\n{text}"
    return tuple(map(float, found.groups()))


@pytest.mark.parametrize("name", ["quick_start.py", "no_complete_row.py"])
def test_an_example_reads_as_a_tutorial(name):
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    title, line, *rest = ast.get_docstring(ast.parse(text)).splitlines()
    assert title
    assert set(line) == {"="}
    assert len(rest) > 8
    assert len(re.findall(r"^# %%\n# \S", text, re.MULTILINE)) >= 4


@pytest.mark.slow
def test_the_quick_start():
    text = run("quick_start.py")
    assert "Family positivity: nothing in these rows speaks against it" in text
    truth, ours, regression = beside(text, "truth #, misscnf #, regression on complete rows #")
    assert ours == pytest.approx(truth, abs=0.2)
    assert abs(ours - truth) < abs(regression - truth)
    low, high = beside(text, "95 % interval from # to #")
    assert low < truth < high
    truth, ours, low, high = beside(text, r"of 2.5: truth #, misscnf # \(90 % from # to #\)")
    assert ours == pytest.approx(truth, abs=0.8)
    assert low < ours < high
    truth, ours, error, dropped = beside(text, "severity: truth #, misscnf # ± #, complete rows #")
    assert ours == pytest.approx(truth, abs=0.06)
    assert 0.02 < error < 0.045
    assert dropped < truth - 0.2
    assert 0.02 < beside(text, "missing information #")[0] < 0.4


@pytest.mark.slow
def test_no_complete_row():
    text = run("no_complete_row.py")
    assert "4000 rows, 0 of them complete" in text
    assert "b -> d: True" in text
    assert "a -> d too: False (not covered: d)" in text
    truth, ours, means = beside(text, "a on d: truth #, misscnf #, means filled in #")
    assert ours == pytest.approx(truth, abs=0.12)  # 3 standard errors of 0.04
    assert means == pytest.approx(0.0, abs=0.05)
    truth, ours = beside(text, "a and d: truth #, misscnf #")
    assert ours == pytest.approx(truth, abs=0.06)
    truth, ours, seen = beside(text, "mean of d: truth #, misscnf #, seen #")
    assert ours == pytest.approx(truth, abs=0.15)
    assert seen > truth + 0.3
    ours, truth = beside(text, r"would be #,\ntruth #")
    assert ours == pytest.approx(truth, abs=0.25)
