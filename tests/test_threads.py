"""Passes over rows on all cores: the same bits for any number of threads, and no race."""

import threading

import numpy as np
import pandas as pd
import pytest
import torch
from misscnf_study.losses import ampute
from misscnf_study.worlds import load_scm
from threadpoolctl import threadpool_info, threadpool_limits

import misscnf.identification.checking as checking
from misscnf import MissCNF, check, write_report
from misscnf.draws import derive_generator
from misscnf.model import StructuralModel
from misscnf.threads import in_order, one_thread, row_parts, side_by_side, spawn


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_parts_hold_every_row_once_and_are_about_equal():
    for rows, most in [(0, 4), (1, 4), (4, 4), (5, 4), (5000, 4096), (20_000, 4096)]:
        parts = row_parts(rows, most)
        assert torch.equal(torch.cat(parts), torch.arange(rows))
        sizes = [len(part) for part in parts]
        assert max(sizes) <= most
        assert max(sizes) - min(sizes) <= 1


def test_generators_of_parts_differ_and_one_part_goes_on():
    mother = derive_generator(0, "mother")
    children = spawn(mother, 3)
    first = [float(torch.rand((), generator=child)) for child in children]
    assert len(set(first)) == 3
    assert spawn(mother, 1) == [mother]


def test_parts_run_side_by_side_in_their_order(threads):
    threads(2)
    meeting = threading.Barrier(2, timeout=30)  # breaks unless two are there at once

    def work(part):
        meeting.wait()
        return part, torch.is_grad_enabled(), torch.get_num_threads()

    with torch.no_grad():
        assert side_by_side(work, [0, 1]) == [(0, False, 1), (1, False, 1)]
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("count", [1, 2, 3])
def test_parts_that_come_one_by_one_are_not_taken_far_ahead(threads, count):
    threads(count)
    taken = []

    def parts():
        for part in range(9):
            taken.append(part)
            yield part

    for done, found in enumerate(in_order(lambda part: part**2, parts())):
        assert found == done**2
        assert len(taken) <= done + 1 + count
    assert taken == list(range(9))


def test_inside_a_part_nothing_is_parted_again(threads):
    threads(2)
    names = side_by_side(
        lambda _: set(side_by_side(lambda _: threading.get_ident(), [0, 1, 2])), [0, 1]
    )
    assert all(len(its) == 1 for its in names)


def test_an_error_in_a_part_is_the_error_of_the_pass(threads):
    threads(2)

    def work(part):
        if part == 1:
            raise ValueError("part 1")
        return part

    with pytest.raises(ValueError, match="part 1"):
        side_by_side(work, [0, 1, 2])
    assert torch.get_num_threads() == 2


def test_training_has_one_thread_and_gives_the_others_back(threads):
    threads(2)
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    with pytest.raises(ZeroDivisionError):
        one_thread()(lambda: 1 / 0)()
    assert torch.get_num_threads() == 2
    with threadpool_limits(2, user_api="blas"):
        with one_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {2}


def test_the_small_regressions_of_a_check_and_of_a_fit_have_one_thread(monkeypatch):
    """Two that wait for each other spin: twenty times the processor time on a busy machine."""
    seen, real = [], checking.find_contradictions

    def watched(*about):
        seen.append(blas_threads())
        return real(*about)

    monkeypatch.setattr(checking, "find_contradictions", watched)
    df = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 3)), columns=list("abc"))
    with threadpool_limits(2, user_api="blas"):
        check(df, "a -> b; c")
        MissCNF("a -> b; c", "linear", progress=False).fit(df)
    assert seen == [{1}, {1}]


def blas_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def test_a_fit_and_its_answers_have_the_same_bits_on_any_number_of_threads(threads):
    """Mixed columns: drawn, enumerated and exact integrals, in several parts."""
    world = load_scm("chain_nlin")
    df = ampute(world.sample(8200, 0), world.graph, "mcar", rate=0.4, seed=0)
    last = df.columns[-1]
    df[last] = (df[last] > 0).astype(float).where(df[last].notna())
    found = []
    for count in (1, 2, 3):
        threads(count)
        model = MissCNF(world.graph, preset="linear", progress=False).fit(df)
        rows = df.head(4200)
        found.append((model.log_prob(rows), model.impute(rows, 1, seed=1)))
    for log_prob, imputed in found[1:]:
        assert (log_prob == found[0][0]).all()
        pd.testing.assert_frame_equal(imputed, found[0][1])


def test_questions_of_small_tables_and_pages_have_one_thread(threads, monkeypatch, tmp_path):
    """Their sweeps are short, and threads that wait for each other at the end of each spin."""
    threads(2)
    random = torch.Generator().manual_seed(0)
    cause = torch.randn(200, generator=random, dtype=torch.float64)
    noise = torch.randn(200, generator=random, dtype=torch.float64)
    df = pd.DataFrame({"t": cause.numpy(), "y": (cause + noise).numpy()})
    model = MissCNF("t -> y", "linear", progress=False).fit(df)
    seen = set()

    def watched(self, *given, **more):
        seen.add(torch.get_num_threads())
        return swept(self, *given, **more)

    swept = StructuralModel.complete
    monkeypatch.setattr(StructuralModel, "complete", watched)
    for ask in (
        lambda: model.effect("y", {"t": 1}, {"t": 0}, interval=0.95),
        lambda: model.curve("y", "t", [0, 1]),
        lambda: model.counterfactual(df, {"t": 1}, interval=0.95),
        lambda: write_report(model, df, tmp_path / "page.html", effect=("t", "y")),
    ):
        ask()
        assert seen == {1}
        assert torch.get_num_threads() == 2
        seen.clear()
