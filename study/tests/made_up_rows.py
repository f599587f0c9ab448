"""Rows of a store that nobody ran, with numbers that a test can check by hand."""

import pandas as pd
from misscnf_study.store import COLUMNS, Store
from misscnf_study.suites import SUITES, grid


def rows_of(tmp_path, numbers, suite="main", metric="kl"):
    """Stores {(options of grid): value or status} and reads it back."""
    store = Store(tmp_path)
    for trial, value in numbers:
        row = {"status": value} if isinstance(value, str) else {metric: value, "status": "ok"}
        store.add(trial, {"error": "", "version": "0", **row})
    return store.rows(suite)


def trials(suite="main", **options):
    return grid(SUITES[suite], **options)


def one(suite="main", **options):
    (trial,) = trials(suite, **{name: [value] for name, value in options.items()})
    return trial


def every_row(suite, **options):
    """Rows of a whole suite whose numbers grow with their place."""
    listed = trials(suite, **options)
    records = [
        {**trial.to_dict(), "status": "ok", "error": None, "version": "0"}
        | dict.fromkeys(
            ("kl", "kl_exact", "ate", "ate_exact", "cf", "seconds"), 0.01 * (1 + i % 7) ** 3
        )
        for i, trial in enumerate(listed)
    ]
    frame = pd.DataFrame(records, columns=list(COLUMNS))
    for name in ("seed", "draws", "rows", "epochs"):
        frame[name] = pd.to_numeric(frame[name]).astype("Int64")
    return frame.astype({"rate": "float64"})
