"""Every test runs in float64 on one thread, and leaves torch's global state as it found it.

Examples in docstrings of the verbs of `MissCNF` go on from the example of the class.
"""

import doctest
import functools
import importlib.util
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy and scipy are imported

import pytest
import torch
from torch.distributions import Distribution

if importlib.util.find_spec("dowhy") is None:
    collect_ignore = ["misscnf/dowhy.py"]  # cannot be imported then, and says so

torch.set_num_threads(1)  # pytest-xdist fills the cores


@pytest.fixture(autouse=True)
def float64():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture(autouse=True)
def untouched_globals(float64):
    before = _globals()
    yield
    changed = [name for name, value in _globals().items() if value != before[name]]
    assert not changed, f"the test changed torch's global {', '.join(changed)}"


@pytest.fixture(autouse=True)
def shown_model(request, float64, doctest_namespace):
    """Gives an example that says so what the example of `MissCNF` has made."""
    told = getattr(getattr(request.node, "dtest", None), "docstring", None) or ""
    if "of `MissCNF`:" in told:
        doctest_namespace.update(_example_of_the_class())


@functools.cache
def _example_of_the_class():
    import misscnf

    names = {"MissCNF": misscnf.MissCNF}
    for example in doctest.DocTestParser().get_examples(misscnf.MissCNF.__doc__):
        exec(compile(example.source, "the example of MissCNF", "single"), names)
    return {name: names[name] for name in ("df", "model", "np", "pd")}


def _globals():
    return {
        "random state": torch.get_rng_state().numpy().tobytes(),
        "default dtype": torch.get_default_dtype(),
        "thread count": torch.get_num_threads(),
        "validation of distributions": Distribution._validate_args,
    }
