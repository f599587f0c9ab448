"""The loop on one model: schedules, averages, the epoch that is kept, ties, shards, resuming."""

from dataclasses import replace

import pytest
import torch
from row_sources import ShardedRows

import misscnf.fitting.train.loop as loop_home
from misscnf import InputError
from misscnf.data.rows import MemoryRows
from misscnf.draws import derive_generator
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.settings import preset_settings
from misscnf.fitting.train.checkpoint import Checkpoint, fingerprint
from misscnf.fitting.train.loop import EpochRecord, Trainer
from misscnf.fitting.train.objective import ObservedLikelihood
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.mechanisms import Gaussian
from misscnf.model import StructuralModel

CHAIN = CausalGraph.read("x0 -> x1 -> x2 -> x3")
TIES = ["first", "next", "next", "next"]


def settings_of(**training):
    return preset_settings("auto", {f"training.{name}": value for name, value in training.items()})


def tied_chain(law=None, keys=TIES):
    """A chain whose later nodes share a mechanism, with a curve if it is not given."""
    law = law or Gaussian(1, mean_curve=(5, 0, 4))
    model = StructuralModel(CHAIN, {"first": Gaussian(0), "next": law}, keys)
    generator = derive_generator(0, "start")
    model.initialise(generator)
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.isfinite().all():
                tensor.copy_(0.2 * torch.randn(tensor.shape, generator=generator))
        for name, tensor in model.named_buffers():
            if name.endswith(("prior_precision", "length_scale")):
                tensor.copy_(2.0)
    return model


def untied(tied):
    """The same model with mechanisms of their own."""
    laws = []
    for node in range(len(tied.graph)):
        law = type(tied.mechanism(node))(**tied.mechanism(node).spec())
        law.load_state_dict(tied.mechanism(node).state_dict())
        laws.append(law)
    return StructuralModel(tied.graph, laws)


def network():
    return Gaussian(1, (8,), (8,))


def chain_rows(rows, seed=0, share=0.4):
    """Rows of a nonlinear chain, of which a share is lost."""
    generator = derive_generator(seed, "rows")
    values = torch.randn(rows, 4, generator=generator)
    for node in (1, 2, 3):
        values[:, node] = 0.4 * values[:, node] + values[:, node - 1].sin()
    return values, torch.rand(rows, 4, generator=generator) >= share


def trained(model, rows, held_out=None, checkpoint=None, watch=None, seed=0, **training):
    settings = settings_of(**training)
    sources = [None if of is None else MemoryRows(*of) for of in (rows, held_out)]
    objective = ObservedLikelihood(model, *sources, settings, seed)
    trainer = Trainer(objective, settings.training, checkpoint)
    return trainer, trainer.run(watch)


def vector(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


# Schedules and averages


def one_number():
    return StructuralModel(CausalGraph.read("a"), [Gaussian(0)])


def numbers(rows, mean=0.0):
    values = torch.randn(rows, 1, generator=derive_generator(0, "numbers")) + mean
    return values, torch.ones(rows, 1).bool()


def test_one_cycle_rises_to_its_peak_and_falls_to_almost_nothing():
    _, history = trained(one_number(), numbers(20), epochs=100, learning_rate=0.1)
    rates = [record.learning_rate for record in history]  # one step an epoch
    assert max(rates) == pytest.approx(0.1)
    assert rates.index(max(rates)) == 14
    assert rates[0] == pytest.approx(0.1 / 25)
    assert rates[-1] == pytest.approx(0.1 / 1000)


@pytest.mark.parametrize("epochs", [1, 2, 3, 20])
def test_short_fits_and_odd_warm_ups_have_a_schedule(epochs):
    """With 20 steps and a warm-up of 0.05, torch's own rise would have no length."""
    for warm_up in (0.0, 0.05, 1.0):
        _, history = trained(one_number(), numbers(20), epochs=epochs, warm_up=warm_up)
        assert len(history) == epochs
        assert all(0 < record.learning_rate <= 0.01 for record in history)


def test_a_plateau_lowers_the_rate_after_sixty_epochs_without_gain():
    """Training rows pull away from what held-out rows like: only the first epoch is a gain."""
    rows, held_out = numbers(20, mean=5.0), numbers(20)
    changes = {"schedule": "plateau", "learning_rate": 0.01, "averaging": None}
    _, history = trained(one_number(), rows, held_out, epochs=64, **changes)
    rates = [record.learning_rate for record in history]
    assert rates[:62] == [0.01] * 62
    assert rates[62:] == pytest.approx([0.0095] * 2)


def test_patience_ends_a_fit_that_gains_no_more():
    rows, held_out = numbers(20, mean=5.0), numbers(20)
    trainer, history = trained(one_number(), rows, held_out, epochs=64, patience=5)
    assert len(history) == 6
    assert trainer.best_epoch == 1


def test_an_average_reaches_back_no_further_than_the_fit():
    """Up to 1 / (1 − 0.9) weights it is their mean; then each step has a share of a tenth."""
    settings = settings_of(averaging=0.9)
    model = one_number()
    trainer = Trainer(
        ObservedLikelihood(model, MemoryRows(*numbers(20)), None, settings, 0), settings.training
    )
    seen = [vector(model)]
    for step in range(9):
        trainer.step(torch.arange(20), step)
        seen.append(vector(model))
    average = torch.stack(seen).mean(0)
    torch.testing.assert_close(torch.cat(list(trainer.averaged.values())), average)
    for step in range(9, 15):
        trainer.step(torch.arange(20), step)
        average = 0.9 * average + 0.1 * vector(model)
    torch.testing.assert_close(torch.cat(list(trainer.averaged.values())), average)


# The epoch that is kept


def pair_rows(rows, seed, form=torch.zeros_like):
    generator = derive_generator(seed, "pair")
    a, noise = torch.randn(2, rows, generator=generator)
    return torch.stack([a, form(a) + noise], 1), torch.ones(rows, 2).bool()


def pair_network():
    model = StructuralModel(CausalGraph.read("a -> b"), [Gaussian(0), Gaussian(1, (32, 32))])
    model.initialise(derive_generator(0, "start"))
    return model


@pytest.mark.slow
def test_the_last_epoch_is_kept_though_another_was_better_by_luck():
    rows = [
        pair_rows(count, seed, lambda a: torch.sin(2 * a)) for count, seed in ((1000, 0), (100, 1))
    ]
    kept, last = pair_network(), pair_network()
    trainer, history = trained(kept, *rows, epochs=20)
    trained(last, *rows, epochs=20, keep_best=False)
    best = max(history, key=lambda record: record.validation)
    assert int(trainer.best_epoch) == best.epoch < len(history)
    assert torch.equal(vector(kept), vector(last))
    assert [record.kept for record in history] == [False] * (len(history) - 1) + [True]


def test_an_earlier_epoch_is_kept_where_the_last_clearly_follows_its_rows():
    rows = pair_rows(60, 0), pair_rows(2000, 1)
    kept, last = pair_network(), pair_network()
    trainer, history = trained(kept, *rows, epochs=30)
    trained(last, *rows, epochs=30, keep_best=False)
    held_out = rows[1][0]
    difference = ElpdDifference.of((kept.log_prob(held_out) - last.log_prob(held_out)).detach())
    assert difference.ratio > 3.0
    best = max(history, key=lambda record: record.validation)
    assert [record for record in history if record.kept] == [best]
    assert int(trainer.best_epoch) == best.epoch < len(history)
    assert best.validation == pytest.approx(kept.log_prob(held_out).mean().item(), abs=1e-9)


def test_a_record_says_what_is_known():
    known = EpochRecord(3, train=-1.0, kept=False).to_dict()
    assert known == {"epoch": 3, "train": -1.0, "kept": False}
    _, history = trained(one_number(), numbers(20), numbers(20), epochs=1)
    names = ["epoch", "learning_rate", "below_target", "train", "validation", "seconds", "kept"]
    assert list(history[0].to_dict()) == names


# Complete families first

COMPLETE = {
    "complete": (0.0, 2000, [True] * 6),
    "with holes": (0.3, 3000, [False] * 2 + [True] * 4),
    "few families": (0.3, 1200, [True] * 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPLETE)
def test_a_fit_begins_with_complete_families_where_they_are_many(name):
    """An epoch that only learns from complete families knows no likelihood of its rows."""
    share, rows, known = COMPLETE[name]
    laws = [Gaussian(0), *(network() for _ in range(3))]
    model = StructuralModel(CHAIN, laws)
    _, history = trained(model, chain_rows(rows, share=share), epochs=4, batch=4096)
    assert [record.train is not None for record in history] == known


def test_families_of_tied_nodes_are_counted_together():
    """600 rows of each of three nodes that share a network show 1,800 families."""
    rows = chain_rows(600, share=0.1)
    tied = tied_chain(network())
    counted = []
    for model in (tied, untied(tied)):
        objective = ObservedLikelihood(model, MemoryRows(*rows), None, settings_of(), 0)
        counted.append(objective.well_covered)
    assert counted == [frozenset({1, 2, 3}), frozenset()]


# Shards


@pytest.mark.parametrize("joint", [False, True])
def test_a_plan_of_shards_is_that_of_the_table(joint):
    values, observed = chain_rows(200)
    wanted = Plan.make(CHAIN, observed, joint=joint)
    for rows in (MemoryRows(values, observed), ShardedRows(values, observed)):
        found = Plan.of(CHAIN, rows, joint=joint)
        for name in ("pattern", "observed", "hidden", "free", "label"):
            assert torch.equal(getattr(found, name), getattr(wanted, name)), name


@pytest.mark.parametrize("gradient", ["fisher", "pathwise"])
def test_shards_train_to_the_same_bits(gradient):
    rows, held_out = chain_rows(300), chain_rows(50, 1)
    settings = settings_of(epochs=3, gradient=gradient, completions=2)
    found = []
    for source in (MemoryRows, ShardedRows):
        sources = source(*rows), source(*held_out)
        model = tied_chain(network())
        objective = ObservedLikelihood(model, *sources, settings, 0)
        assert "last" in objective.state
        Trainer(objective, settings.training).run()
        found.append(vector(model))
    assert torch.equal(*found)
    assert not torch.equal(found[0], vector(tied_chain(network())))


def test_a_step_reads_the_rows_of_its_batch_alone():
    rows = ShardedRows(*chain_rows(300))
    settings = settings_of(epochs=1)
    objective = ObservedLikelihood(tied_chain(), rows, None, settings, 0)
    rows.most = 0
    Trainer(objective, settings.training).run()
    assert rows.most == settings.training.batch_for(300) == 64


def test_same_seed_same_bits_and_another_seed_other_bits():
    found = []
    for seed in (0, 0, 1):
        model = tied_chain(network())
        trained(model, chain_rows(200), epochs=2, seed=seed)
        found.append(vector(model))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


# Ties


def gradients(model, rows, *, prior=True):
    if not prior:
        for name, buffer in model.named_buffers():
            if name.endswith("prior_precision"):
                buffer.zero_()
    objective = ObservedLikelihood(model, MemoryRows(*rows), None, settings_of(), 0)
    objective.gradient(torch.arange(len(rows[0])), 0, 0)
    return {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize("law", ["curve", "network"])
def test_a_shared_gradient_is_the_sum_of_those_of_its_nodes(law):
    """With holes, by the same draws; priors, which count once, left out."""
    tied = tied_chain(network() if law == "network" else None)
    alone = untied(tied)
    rows = chain_rows(100)
    wanted = gradients(alone, rows, prior=False)
    for name, found in gradients(tied, rows, prior=False).items():
        block, rest = name.removeprefix("mechanisms.").split(".", 1)
        parts = [wanted[f"mechanisms.{node}.{rest}"] for node in tied.blocks[int(block)]]
        torch.testing.assert_close(found, sum(parts), rtol=1e-9, atol=1e-12)


def test_the_prior_of_a_shared_curve_counts_once():
    rows = chain_rows(100)
    name = "mechanisms.1.mean.curve.weight"
    with_prior, without = (
        gradients(tied_chain(), rows, prior=prior)[name] for prior in (True, False)
    )
    weight = tied_chain().get_parameter(name).detach()
    torch.testing.assert_close(with_prior - without, 2.0 * weight / 100)


def test_a_shared_line_rests_at_the_stacked_regression():
    """On complete rows, least squares of all later nodes on their parents, stacked."""
    values, _ = chain_rows(200)
    own, parent = values[:, 1:].flatten(), values[:, :-1].flatten()
    columns = torch.stack([torch.ones_like(parent), parent], 1)
    line = torch.linalg.lstsq(columns, own).solution
    law, root = Gaussian(1), Gaussian(0)
    law.set_line(line[0], [line[1]], float((own - columns @ line).square().mean().sqrt()))
    root.set_line(values[:, 0].mean(), [], float(values[:, 0].std(correction=0)))
    model = StructuralModel(CHAIN, {"first": root, "next": law}, TIES)
    found = gradients(model, (values, torch.ones_like(values).bool()))
    assert max(gradient.abs().max() for gradient in found.values()) < 1e-12


def test_a_shared_parameter_is_one_entry_of_the_optimiser():
    trainer, _ = trained(tied_chain(), chain_rows(50), epochs=1)
    entries = trainer.optimiser.param_groups[0]["params"]
    each = sum(
        len(list(law.parameters())) for law in (Gaussian(0), Gaussian(1, mean_curve=(5, 0, 4)))
    )
    assert len(entries) == len({id(entry) for entry in entries}) == each


# Going on


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["one-cycle", "plateau"])
@pytest.mark.parametrize("law", ["curve", "network"])
def test_an_interrupted_fit_of_tied_nodes_resumes_to_the_same_bits(
    law, schedule, tmp_path, monkeypatch
):
    monkeypatch.setattr(loop_home, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    rows, held_out = chain_rows(300), chain_rows(60, 1)
    whole, stopped, resumed = (
        tied_chain(network() if law == "network" else None) for _ in range(3)
    )
    _, history = trained(whole, rows, held_out, epochs=6, schedule=schedule)

    def stop(record, epochs):
        if record.epoch == 4:
            raise KeyboardInterrupt

    kept = Checkpoint(tmp_path, "network", "mark")
    with pytest.raises(KeyboardInterrupt):
        trained(stopped, rows, held_out, kept, stop, epochs=6, schedule=schedule)
    seen = []
    _, again = trained(
        resumed,
        rows,
        held_out,
        kept,
        lambda record, epochs: seen.append(record.epoch),
        epochs=6,
        schedule=schedule,
    )
    assert seen == [4, 5, 6]  # the fourth was not kept yet when it stopped
    assert torch.equal(vector(whole), vector(resumed))
    assert not torch.equal(vector(whole), vector(stopped))
    histories = [[replace(record, seconds=None) for record in of] for of in (history, again)]
    assert histories[0] == histories[1]
    finished = tied_chain(network() if law == "network" else None)
    _, once_more = trained(finished, rows, held_out, kept, epochs=6, schedule=schedule)
    assert torch.equal(vector(whole), vector(finished))
    assert once_more == again


def test_a_fit_of_one_step_an_epoch_resumes_from_its_first(tmp_path, monkeypatch):
    monkeypatch.setattr(loop_home, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    whole, stopped, resumed = (one_number() for _ in range(3))
    trained(whole, numbers(20), epochs=4)

    def stop(record, epochs):
        if record.epoch == 2:
            raise KeyboardInterrupt

    kept = Checkpoint(tmp_path, "network", "mark")
    with pytest.raises(KeyboardInterrupt):
        trained(stopped, numbers(20), None, kept, stop, epochs=4)
    _, history = trained(resumed, numbers(20), None, kept, epochs=4)
    assert [record.epoch for record in history] == [1, 2, 3, 4]
    assert torch.equal(vector(whole), vector(resumed))


def test_a_checkpoint_of_other_rows_is_refused(tmp_path):
    values, observed = chain_rows(100)
    sources = MemoryRows(values, observed), ShardedRows(values, observed)
    marks = [fingerprint({"seed": 0}, source, None) for source in sources]
    assert marks[0] == marks[1]
    others = {
        fingerprint({"seed": 1}, sources[0], None),
        fingerprint({"seed": 0}, MemoryRows(values[1:], observed[1:]), None),
        fingerprint({"seed": 0}, MemoryRows(values, ~observed), None),
        fingerprint({"seed": 0}, None, sources[0]),
    }
    assert len(others | {marks[0]}) == 5
    trained(tied_chain(), (values, observed), None, Checkpoint(tmp_path, "s", marks[0]), epochs=1)
    with pytest.raises(InputError, match="another table, graph or settings"):
        Checkpoint(tmp_path, "s", others.pop()).read()
