"""A store keeps each row whole, whoever writes and whoever is killed."""

import threading

import pandas as pd
import pytest
from made_up_rows import one, trials
from misscnf_study.store import COLUMNS, Store

from misscnf import InputError

OK = {"kl": 0.125, "seconds": 1.5, "status": "ok", "version": "0.1.0"}


@pytest.fixture
def trial():
    return one(scm="chain_lin", mechanism="mar", rate=0.6, method="misscnf", seed=7)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def test_a_store_starts_empty(store):
    assert store.rows("main").empty
    assert store.curves("positivity").empty
    assert not store.folder.exists()


def test_a_row_comes_back(store, trial):
    store.add(trial, OK)
    rows = store.rows("main")
    assert list(rows.columns) == list(COLUMNS)
    assert list(rows.index) == [trial.id]
    row = rows.loc[trial.id]
    assert (row["rate"], row["kl"], row["status"], row["seed"]) == (0.6, 0.125, "ok", 7)
    assert pd.isna(row["cf"])
    assert pd.isna(row["draws"])


def test_people_can_read_it(store, trial):
    store.add(trial, OK)
    header, line = (store.folder / "main.csv").read_text().splitlines()
    assert header.startswith("suite,scm,mechanism,rate,method,preset,seed")
    assert line == "main,chain_lin,mar,0.6,misscnf,auto,7,,,,0.125,,,,,1.5,ok,,0.1.0"


def test_the_newest_row_of_a_trial_wins(store, trial):
    store.add(trial, {"status": "failed", "error": "no"})
    store.add(one(scm="fork_lin", mechanism="mar", rate=0.6, method="mice", seed=0), OK)
    store.add(trial, OK)
    assert store.rows("main").loc[trial.id, "status"] == "ok"
    assert len(store.rows("main")) == 2


def test_an_error_stays_on_its_line(store, trial):
    store.add(trial, {"status": "failed", "error": 'a "quoted",\nbroken\r\n  line'})
    assert store.rows("main").loc[trial.id, "error"] == 'a "quoted", broken line'
    assert len((store.folder / "main.csv").read_text().splitlines()) == 2


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_torn_line_is_no_row_and_is_cut_off(store, trial, cut):
    store.add(trial, OK)
    path = store.folder / "main.csv"
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines()[1].replace(b",7,", b",8,")[:cut])
    assert list(store.rows("main").index) == [trial.id]
    other = one(scm="chain_lin", mechanism="mar", rate=0.6, method="misscnf", seed=9)
    store.add(other, OK)
    assert list(store.rows("main").index) == [trial.id, other.id]


def test_writers_side_by_side_lose_nothing(store):
    listed = trials(scm=["chain_lin"], method=["mice", "mean"])
    workers = [
        threading.Thread(
            target=lambda part: [Store(store.folder).add(t, OK) for t in part], args=(p,)
        )
        for p in (listed[::3], listed[1::3], listed[2::3])
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert set(store.rows("main").index) == {trial.id for trial in listed}
    assert len((store.folder / "main.csv").read_text().splitlines()) == 1 + len(listed)


def test_two_stores_join_by_appending(store, trial, tmp_path):
    store.add(trial, OK)
    other = Store(tmp_path / "other")
    mice = one(scm="chain_lin", mechanism="mar", rate=0.6, method="mice", seed=7)
    other.add(mice, OK)
    with (store.folder / "main.csv").open("a") as file:
        file.write((other.folder / "main.csv").read_text())
    assert list(store.rows("main").index) == [trial.id, mice.id]


def test_a_curve_comes_back_with_its_trial(store):
    curve = pd.DataFrame({"left": [0.0, 1.0], "right": [1.0, 2.0], "error": [0.5, float("nan")]})
    trial = one(
        "positivity", scm="chain_lin", mechanism="two_patterns_holds", method="mice", seed=1
    )
    store.add(trial, OK, curve)
    curves = store.curves("positivity")
    assert list(curves["right"]) == [1.0, 2.0]
    assert set(curves["mechanism"]) == {"two_patterns_holds"}
    assert curves["rate"].isna().all()
    assert (store.folder / "curves" / f"{trial.id}.csv").exists()


def test_checkpoints_go_when_their_row_is_there(store, trial):
    (store.unfinished / trial.id / "network").mkdir(parents=True)
    store.add(trial, OK)
    assert not store.unfinished.exists()


def test_a_file_is_no_store(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file; name a directory"):
        Store(tmp_path / "file")


def test_other_columns_are_refused(store, trial):
    store.folder.mkdir()
    (store.folder / "main.csv").write_text("suite,scm\n")
    with pytest.raises(InputError, match="has other columns"):
        store.add(trial, OK)


def test_a_row_edited_to_nonsense_is_named(store, trial):
    store.add(trial, OK)
    path = store.folder / "main.csv"
    path.write_text(path.read_text().replace(",7,", ",seven,"))
    with pytest.raises(InputError, match=r"line 2 of .* is not a row"):
        store.rows("main")
