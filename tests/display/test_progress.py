"""Long work in a log: a line now and then, with the share that is done and the time left."""

import logging

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
