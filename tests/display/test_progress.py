"""Long work in a log: a line now and then, with the share that is done and the time left.

In a notebook: a bar that is written anew, and gone at the end.
"""

import inspect
import logging
import sys
import types

import pytest

from misscnf.display import progress
from misscnf.display.progress import ProgressBar


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_log_has_a_line_now_and_then(clock, caplog):
    caplog.set_level(logging.INFO, "misscnf")
    with ProgressBar("fitting", show=None) as bar:
        for step in range(1, 41):
            clock[0] += 1.0
            bar(step, 100, "a note")
    assert [record.getMessage() for record in caplog.records] == [
        "fitting: 15 of 100 (15 %); 14 s so far, about 79 s left; a note",
        "fitting: 30 of 100 (30 %); 29 s so far, about 68 s left; a note",
    ]


def test_no_line_where_no_progress_is_wanted(clock, caplog):
    caplog.set_level(logging.INFO, "misscnf")
    with ProgressBar("fitting", show=False) as bar:
        clock[0] += 100.0
        bar(1, 2)
    assert not caplog.records


def test_a_function_is_told_of_every_step_and_nobody_else(clock, caplog):
    caplog.set_level(logging.INFO, "misscnf")
    told = []
    with ProgressBar("fitting", show=lambda *step: told.append(step)) as bar:
        bar(1, 3)
        clock[0] += 100.0
        bar(2, 3, "a note", "networks")
    assert told == [(1, 3, "", "fitting"), (2, 3, "a note", "networks")]
    assert not caplog.records


def test_a_pass_over_rows_says_how_many_a_second(clock, caplog):
    caplog.set_level(logging.INFO, "misscnf")
    with ProgressBar("fitting", show=None) as bar:
        for name in ("pass 1", "pass 2"):
            for done in range(0, 5001, 1000):
                bar.rows(done, 5000, name)
                clock[0] += 4.0
    assert [record.getMessage() for record in caplog.records] == [
        "pass 1: 4000 of 5000 (80 %); 16 s so far, about 4 s left; 250 rows a second",
        "pass 2: 2000 of 5000 (40 %); 8 s so far, about 12 s left; 250 rows a second",
    ]


SENTENCE = "roughly 2 s [of] processor time"


def test_a_sentence_is_said_once_beside_the_bar_or_in_a_log_that_is_read(caplog, capsys):
    with ProgressBar("fitting", show=True) as bar:
        bar.say(SENTENCE)
    assert SENTENCE in capsys.readouterr().err  # no log is set up, as in Python by default
    assert not caplog.records
    caplog.set_level(logging.INFO, "misscnf")
    with ProgressBar("fitting", show=True) as bar:
        bar.say(SENTENCE)
    assert SENTENCE not in capsys.readouterr().err
    assert [record.getMessage() for record in caplog.records] == [SENTENCE]


def test_a_sentence_is_not_printed_where_no_bar_is_wanted(capsys):
    with ProgressBar("fitting", show=False) as bar:
        bar.say(SENTENCE)
    assert capsys.readouterr().err == ""


@pytest.fixture
def shown(monkeypatch):
    """Everything that a notebook would show, as far as IPython is asked."""
    shown = []

    class Output:
        def update(self, what, *, raw):
            assert raw
            shown.append(what)

    def display(what, *, raw, display_id):
        assert raw
        assert display_id
        shown.append(what)
        return Output()

    shell = types.SimpleNamespace(kernel=object())
    python = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    return shown


@pytest.mark.parametrize("show", [None, True])
def test_a_notebook_has_a_bar_that_is_gone_at_the_end(clock, caplog, shown, show):
    caplog.set_level(logging.INFO, "misscnf")
    with ProgressBar("fitting", show=show) as bar:
        for step in range(1, 5):
            clock[0] += 1.0
            bar(step, 4, "<b>")
    lines = [one["text/plain"] for one in shown]
    assert lines[:2] == [
        "fitting: 1 of 4; <b>",
        "fitting: 2 of 4 (50 %); 1 s so far, about 1 s left; <b>",
    ]
    assert lines[-1] == shown[-1]["text/html"] == ""
    assert '<progress value="0.5000"' in shown[1]["text/html"]
    assert "&lt;b&gt;" in shown[1]["text/html"]
    assert not caplog.records


def test_a_notebook_has_the_sentence_at_once_and_above_its_bar(clock, shown):
    with ProgressBar("fitting", show=None) as bar:
        bar.say("2 s < 3 s")
        assert shown[0]["text/plain"] == "2 s < 3 s\nfitting"
        clock[0] += 1.0
        bar(1, 4)
    assert shown[1]["text/plain"] == "2 s < 3 s\nfitting: 1 of 4"
    assert shown[1]["text/html"].startswith("<div>2 s &lt; 3 s</div>")
    assert shown[-1]["text/plain"] == ""


def test_a_notebook_is_not_written_to_at_every_step(clock, shown):
    with ProgressBar("fitting", show=None) as bar:
        for step in range(40):
            clock[0] += 0.25
            bar(step, 100)
    assert len(shown) == 40 * 0.25 / 0.5 + 1


def test_a_notebook_shows_nothing_of_what_is_quick_or_not_wanted(clock, shown):
    with ProgressBar("fitting", show=None) as bar:
        bar(1, 1)
    with ProgressBar("fitting", show=False) as bar:
        clock[0] += 100.0
        bar(1, 2)
    assert shown == []


def test_python_without_a_kernel_is_no_notebook(monkeypatch, clock, caplog):
    caplog.set_level(logging.INFO, "misscnf")
    shell = types.SimpleNamespace()  # ipython in a terminal
    python = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", python)
    with ProgressBar("fitting", show=None) as bar:
        clock[0] += 100.0
        bar(1, 2)
    assert len(caplog.records) == 1


WORK = """
    import time

    from misscnf.display.progress import ProgressBar

    with ProgressBar("fitting", show=None, seconds_a_picture=0.05) as bar:
        for step in range(4):
            time.sleep(0.1)
            bar(step + 1, 4)
    print("fitted")
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of what starts the kernel
def test_a_kernel_shows_the_bar_and_then_nothing_of_it():
    nbformat = pytest.importorskip("nbformat", reason="nbclient and ipykernel are not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    seen = []

    class Client(nbclient.NotebookClient):
        def process_message(self, message, *rest):
            if message["msg_type"] in ("display_data", "update_display_data"):
                seen.append(message["content"]["data"].get("text/plain"))
            return super().process_message(message, *rest)

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(inspect.cleandoc(WORK))])
    Client(notebook, timeout=60, kernel_name="python3").execute()
    assert seen[:4] == [f"fitting: {step} of 4" for step in range(1, 5)]
    texts = [out.get("text") or out["data"]["text/plain"] for out in notebook.cells[0].outputs]
    assert "".join(texts) == "fitted\n"
