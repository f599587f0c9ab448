"""In processes of their own: Ctrl-C and going on, the cold start, completion."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import misscnf

START = [sys.executable, "-m", "misscnf"]
HERE = {
    **os.environ,
    "PYTHONPATH": str(Path(misscnf.__file__).parents[1]),
    "OMP_NUM_THREADS": "1",
}

HEAVY = {"torch", "pandas", "numpy", "sklearn", "scipy", "matplotlib", "networkx", "rich"}


@pytest.fixture
def curved(here):
    """A table on which the network is kept."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    table = pd.DataFrame({"x": x, "y": np.tanh(8 * x) + 0.1 * rng.normal(size=600)})
    table.loc[rng.random(600) < 0.1, "y"] = np.nan
    table.to_csv(here / "curved.csv", index=False)


@pytest.fixture
def as_in_a_shell(float64):
    """Torch as the other process has it: its rounding enters the bits that are compared."""
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


def hears_ctrl_c():
    """A background job of a shell, as CI may be, has its children deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def parameters(folder):
    return (folder / "parameters.safetensors").read_bytes()


@pytest.mark.slow
def test_ctrl_c_stops_a_fit_and_the_same_command_goes_on(here, curved, as_in_a_shell, call):
    words = ["fit", "curved.csv", "--graph", "x -> y", "--out", "m", "--checkpoint", "kept"]
    process = subprocess.Popen(
        [*START, *words], env=HERE, stderr=subprocess.PIPE, text=True, preexec_fn=hears_ctrl_c
    )
    deadline = time.monotonic() + 120.0
    while not (here / "kept/network/state.json").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60.0)[1]
    assert process.returncode == 130
    assert said.splitlines()[-1] == "misscnf: stopped; the same command goes on from 'kept'."
    assert "Traceback" not in said
    assert not (here / "m").exists()
    resumed = call([*words, "--json"])
    assert json.loads(resumed.stdout)["chosen"] == "network"
    other = [word if word != "m" else "uninterrupted" for word in words[:-2]]
    assert call(other).exit_code == 0
    assert parameters(here / "m") == parameters(here / "uninterrupted")
    changed = call([*words, "--seed", "1"])
    assert changed.exit_code == 2
    assert "'kept/network' belongs to another table" in changed.stderr


def test_help_waits_for_nothing_heavy():
    code = (
        "import sys\n"
        "from misscnf.cli.app import VERBS, app\n"
        "for words in (['--help'], *([verb, '--help'] for verb in VERBS)):\n"
        "    try:\n        app(words)\n"
        "    except SystemExit as end:\n        assert end.code == 0\n"
        f"print('HEAVY', sorted({HEAVY!r} & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], env=HERE, capture_output=True, text=True)
    assert run.stdout.splitlines()[-1] == "HEAVY []", run.stderr


def test_the_shell_completes_verbs():
    asked = {"_MISSCNF_COMPLETE": "complete_bash", "COMP_WORDS": "misscnf co", "COMP_CWORD": "1"}
    run = subprocess.run(START, env=HERE | asked, capture_output=True, text=True)
    assert run.stdout.split() == ["counterfactual"]


@pytest.mark.slow
def test_public_names_are_there_whatever_is_imported_first():
    code = (
        "import misscnf.identification.report, misscnf.identification, misscnf\n"
        "assert callable(misscnf.check)\n"
        "from misscnf import *\n"
        "assert check is misscnf.check\n"
        "assert MissCNF.__module__ == 'misscnf.estimators.misscnf'\n"
        "assert set(misscnf.__all__) <= set(dir(misscnf))\n"
        "assert not hasattr(misscnf, 'nothing')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], env=HERE, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
