"""Suites are data: every trial has an id that says all of it, and options narrow."""

import pytest
from made_up_rows import one, trials
from misscnf_study.data import REGIMES
from misscnf_study.losses import MECHANISMS_OF_LOSS
from misscnf_study.methods import METHODS, load_method
from misscnf_study.suites import SUITES, Trial, choose, grid
from misscnf_study.worlds import MAIN, load_scm

from misscnf import InputError


@pytest.mark.parametrize("suite", SUITES)
def test_an_id_says_all_of_a_trial(suite):
    listed = [*grid(SUITES[suite]), *grid(SUITES[suite], rows=200, epochs=3, preset=["linear"])]
    assert len({trial.id for trial in listed}) == len(listed)
    assert [Trial.read(trial.id) for trial in listed] == listed


def test_an_id_reads_well():
    assert one(scm="chain_lin", mechanism="mar", rate=0.6, method="misscnf", seed=7).id == (
        "main-chain_lin-mar-0.6-misscnf-auto-7"
    )
    draws = Trial.read("draws-fork_nlin-mar-0.6-misscnf-paper-0-draws=32-epochs=100")
    assert (draws.draws, draws.rows, draws.epochs) == (32, None, 100)
    path = Trial.read("main-fork_lin-mcar-0.3-sklearn:sklearn.impute:KNNImputer-auto-0")
    assert path.method == "sklearn:sklearn.impute:KNNImputer"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "main",
        "main-chain_lin-mar-0.6-misscnf-auto",
        "main-chain_lin-mar-0.60-misscnf-auto-7",
        "main-chain_lin-mar-much-misscnf-auto-7",
        "main-chain_lin-mar-1.6-misscnf-auto-7",
        "main-chain_lin-mar-0.6-misscnf-auto-seven",
        "main-chain_lin-mar-0.6-misscnf-auto-7-rows",
        "main-chain_lin-mar-0.6-misscnf-auto-7-size=3",
        "main-chain_lin-mar-0.6-misscnf-auto-7-epochs=3-rows=2",
        "main-chain_lin-mar-nan-misscnf-auto-7",
    ],
)
def test_what_is_no_id_is_refused(text):
    with pytest.raises(InputError, match="is not the id of a trial"):
        Trial.read(text)


@pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
def test_a_suite_names_only_what_there_is(suite):
    assert set(suite.methods) <= METHODS.keys()
    for scm in (*suite.scms, *suite.more_scms):
        assert load_scm(scm)
    for mechanism, rate in suite.losses:
        kind = MECHANISMS_OF_LOSS[REGIMES.get(mechanism, (mechanism,))[0]]
        assert ("rate" in kind.__dataclass_fields__) == (rate is not None)


def test_main_is_the_papers():
    assert set(SUITES["main"].scms) == set(MAIN)
    lost = [trial for trial in grid(SUITES["main"]) if trial.method == "mice"]
    assert len(lost) == 8 * 2 * 3 * 5


def test_seeds_come_first():
    seeds = [trial.seed for trial in trials(scm=["chain_lin", "fork_lin"], seed=[3, 1])]
    assert seeds == sorted(seeds, reverse=True)


def test_the_reference_belongs_to_every_loss():
    alone = trials(mechanism=["mar"], rate=[0.9], scm=["chain_lin"], method=["full"], seed=[0])
    assert [trial.id for trial in alone] == ["main-chain_lin-complete-none-full-auto-0"]
    both = trials(scm=["chain_lin"], method=["full", "mean"], seed=[0])
    assert len(both) == 1 + 6


def test_options_narrow_and_repeated_ones_add():
    assert len(trials(scm=["chain_lin"], mechanism=["mar"], method=["mice"])) == 3 * 5
    assert len(trials(scm=["chain_lin", "fork_lin"], rate=[0.3, 0.9], method=["mice"])) == 8 * 5
    assert len(trials(scm=["chain_lin", "chain_lin"], method=["mice"], seed=[0])) == 6
    assert len(trials("draws", scm=["fork_nlin"], draws=[32, 64], seed=[0])) == 2
    assert trials(scm=["diamond_nlin"], method=["mice"], seed=[9])  # beyond the paper


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"scm": ["chain_li"]}, "--scm: the suite main has no chain_li; did you mean chain_lin"),
        ({"mechanism": ["self_masking"]}, "--mechanism: the suite main has no self_masking"),
        ({"rate": [0.7]}, "--rate: the suite main has no 0.7; it has 0.3, 0.6, 0.9."),
        ({"seed": [-1]}, "--seed is a whole number of at least 0; got -1"),
        ({"rows": 3}, "--rows is a whole number of at least 50; got 3"),
        ({"epochs": 0}, "--epochs is a whole number of at least 1; got 0"),
    ],
)
def test_what_a_suite_does_not_have_is_refused(options, says):
    with pytest.raises(InputError, match=says):
        trials(**options)


def test_options_that_do_not_meet_are_refused():
    with pytest.raises(InputError, match=r"together with --rate 0\.5"):
        trials("positivity", mechanism=["two_patterns_holds"], rate=[0.5])


def test_choose_takes_what_is_known():
    choose("seed", [1, 2], [2, 1], "the store")


def test_a_method_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="--method: there is no 'mise'; did you mean mice"):
        load_method("mise")
    with pytest.raises(InputError, match="--method: the imputer 'nowhere:Imputer'"):
        load_method("sklearn:nowhere:Imputer")
