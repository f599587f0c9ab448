"""Many models at once: each as if alone, each with its own epoch; blocks; folds."""

from dataclasses import replace

import pytest
import torch

from misscnf.data.rows import MemoryRows
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.settings import preset_settings
from misscnf.fitting.stacked import Ensemble
from misscnf.fitting.train.ensemble import CompletionLikelihood, train_ensemble, train_folds
from misscnf.fitting.train.loop import Trainer
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Gaussian
from misscnf.model import StructuralModel

CHAIN = CausalGraph.read("x0 -> x1 -> x2")
SETTINGS = preset_settings("auto", {"epochs": 3})


def chain_rows(rows=200, share=0.3):
    generator = derive_generator(0, "rows")
    values = torch.randn(rows, 3, generator=generator)
    for node in (1, 2):
        values[:, node] = 0.4 * values[:, node] + values[:, node - 1].sin()
    return values, torch.rand(rows, 3, generator=generator) >= share


def chain_model(seed=0, *, tied=True, law=None):
    """A chain of curves, tied or not, with weights by chance."""
    laws = [law() if law else Gaussian(1, mean_curve=(5, 0, 4)) for _ in range(2)]
    generator = derive_generator(0, "basis")
    for mine in laws:
        for name, tensor in mine.named_buffers():
            if name.endswith(("centres", "projection")):
                tensor.copy_(torch.randn(tensor.shape, generator=generator.manual_seed(0)))
            if name.endswith("prior_precision"):
                tensor.copy_(torch.arange(1.0, 1.0 + len(tensor)))
    first = {"first": Gaussian(0)}
    if tied:
        model = StructuralModel(CHAIN, {**first, "next": laws[0]}, ["first", "next", "next"])
    else:
        model = StructuralModel(CHAIN, [first["first"], *laws])
    model.initialise(derive_generator(seed, "start"))
    with torch.no_grad():
        for mechanism in model.mechanisms:
            generator = derive_generator(seed, "weights")
            for parameter in mechanism.parameters():
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return model


def completions_of(model, rows, count=4):
    return Completions.draw(model, MemoryRows(*rows), count, derive_generator(0, "completions"))


def exponential(count, rows):
    weights = torch.empty(count, rows, dtype=torch.float64)
    return weights.exponential_(generator=derive_generator(0, "weights"))


def vector(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def network():
    return Gaussian(1, (8,), (8,))


# Blocks


def test_an_ensemble_of_tied_models_has_one_entry_a_block():
    models = [chain_model(seed) for seed in range(3)]
    ensemble = Ensemble(models)
    assert len(ensemble.parameters) == 2
    assert len(ensemble.priors()) == 1
    wanted = {f"mechanism.{name}" for name, _ in models[0].block(1).named_parameters()}
    assert set(ensemble.parameters[1]) == wanted
    evaluate = ensemble.log_factor(ensemble.parameters)
    values, _ = chain_rows()
    for node in range(3):
        family = values[:, node], models[0].parents_of(values, node)
        each = [model.mechanism(node).log_prob(*family) for model in models]
        torch.testing.assert_close(evaluate(node, *family), torch.stack(each))


def test_blocks_that_are_not_asked_for_stay_as_they_are():
    models = [chain_model(seed) for seed in range(2)]
    before = [(vector(m.block(0)), vector(m.block(1))) for m in models]
    ensemble = Ensemble(models, [0])
    assert not ensemble.parameters[1]
    assert ensemble.log_factor(ensemble.parameters)(2, torch.ones(1), torch.ones(1, 1)) is None
    assert ensemble.priors() == []
    completions = completions_of(models[0], chain_rows())
    fold = torch.arange(200) % 2
    weights = 2.0 * (fold != torch.arange(2)[:, None])
    train_folds(models, completions, weights, fold, SETTINGS, seed=0, blocks=[0])
    for model, (root, others) in zip(models, before, strict=True):
        assert not torch.equal(vector(model.block(0)), root)
        assert torch.equal(vector(model.block(1)), others)


def gradients(model, completions, *, priors=True):
    count = len(completions)
    rows = torch.arange(count), torch.arange(0)
    weights = torch.ones(1, count)
    objective = CompletionLikelihood([model], completions, rows, weights, SETTINGS, seed=0)
    objective.priors = objective.priors if priors else []
    objective.gradient(rows[0], 0, 0)
    return {name: parameter.grad[0] for name, parameter in objective.parameters.items()}


def test_a_shared_gradient_is_the_sum_of_those_of_its_nodes_and_its_prior_counts_once():
    tied, alone = chain_model(), chain_model(tied=False)
    completions = completions_of(tied, chain_rows())
    found = gradients(tied, completions, priors=False)
    wanted = gradients(alone, completions, priors=False)
    for name, gradient in found.items():
        block, rest = name.split("/")
        parts = [wanted[f"{node}/{rest}"] for node in tied.blocks[int(block)]]
        torch.testing.assert_close(gradient, sum(parts), rtol=1e-9, atol=1e-12)
    name = "1/mechanism.mean.curve.weight"
    with_prior = gradients(tied, completions)[name] - found[name]
    weight = tied.block(1).mean.curve.weight.detach()
    torch.testing.assert_close(with_prior, torch.arange(1.0, 5.0) * weight / 200)


def test_replicates_are_drawn_to_weights_from_the_prior():
    """2,000 replicates of four weights: a deviation is known to 1.6 %; 8 % is 5 of these."""
    models = [chain_model()] * 2000
    rows = torch.arange(200), torch.arange(0)
    completions = completions_of(models[0], chain_rows())
    weights = torch.ones(2000, 200)
    objective = CompletionLikelihood(models, completions, rows, weights, SETTINGS, seed=0)
    assert not objective.priors[0].centre.any()
    objective.draw_priors()
    spread = objective.priors[0].centre.std(0)[0]
    torch.testing.assert_close(
        spread, torch.arange(1.0, 5.0).rsqrt(), rtol=0.08, atol=0.0, check_dtype=False
    )


# Replicates


def train(completions, models, weights, held_out=40):
    """Trains models and returns the parameters of each, as one vector."""
    order = torch.arange(len(completions))
    rows = order[held_out:], order[:held_out]
    train_ensemble(models, completions, rows, weights, SETTINGS, seed=0)
    return [vector(model) for model in models]


@pytest.mark.parametrize("tied", [False, True])
def test_trained_together_or_alone_is_the_same(tied):
    starts = [chain_model(seed, tied=tied, law=network) for seed in range(3)]
    again = chain_model(2, tied=tied, law=network)
    completions, weights = completions_of(starts[0], chain_rows()), exponential(3, 200)
    together = train(completions, starts, weights)
    alone = train(completions, [again], weights[2:])
    torch.testing.assert_close(together[2], alone[0], rtol=0.0, atol=1e-8)
    assert not torch.allclose(together[0], together[2], atol=1e-3)


def test_rows_of_weight_zero_do_not_matter():
    weights, completions = exponential(1, 200), completions_of(chain_model(), chain_rows())
    weights[:, 100:150] = 0.0
    weights[:, 10:20] = 0.0  # held out
    other = completions.completed.clone()
    other[:, [*range(100, 150), *range(10, 20)]] += 3.0
    altered = replace(completions, completed=other, own=other)
    same = [train(cells, [chain_model()], weights)[0] for cells in (completions, altered)]
    torch.testing.assert_close(*same, rtol=0.0, atol=1e-8)
    weights[:, 100:150] = 1.0
    felt = [train(cells, [chain_model()], weights)[0] for cells in (completions, altered)]
    assert not torch.allclose(*felt, atol=1e-3)


PAIR = CausalGraph.read("a -> b")


def chance(rows):
    """Two columns that have nothing to do with each other, and networks that will believe so."""
    table = torch.randn(rows, 2, generator=derive_generator(0, "chance"))

    def start(seed):
        model = StructuralModel(PAIR, [Gaussian(0), Gaussian(1, (32, 32))])
        model.initialise(derive_generator(seed, "start"))
        return model

    return completions_of(start(0), (table, torch.ones_like(table).bool()), 1), start


def test_each_replicate_keeps_its_own_epoch():
    """Both learn from forty rows of chance; held-out rows weigh nothing for the second."""
    completions, start = chance(2040)
    settings = preset_settings("auto", {"epochs": 30})
    weights = torch.ones(2, 2040, dtype=torch.float64)
    weights[1, 40:] = 0.0
    rows = torch.arange(2040).split([40, 2000])
    models = [start(0), start(0)]
    objective = CompletionLikelihood(models, completions, rows, weights, settings, seed=0)
    trainer = Trainer(objective, settings.training)
    history = trainer.run()
    for name, parameter in objective.parameters.items():
        assert torch.equal(parameter[0], trainer.best[name][0])
        assert torch.equal(parameter[1], trainer.averaged[name][1])
    assert not torch.equal(parameter[0], parameter[1])
    assert [record.epoch for record in history if record.kept] == [trainer.best_epoch[0], 30]


def test_a_judge_may_choose_the_epoch_of_each_replicate():
    """The first is liked best after two epochs, the second after four; five are trained."""
    completions, start = chance(100)
    settings = preset_settings("auto", {"epochs": 5})
    rows = torch.arange(100).split([80, 20])
    models = [start(0), start(1)]
    objective = CompletionLikelihood(
        models, completions, rows, torch.ones(2, 100), settings, seed=0
    )
    seen = []

    def judge(parameters):
        seen.append({name: tensor.detach().clone() for name, tensor in parameters.items()})
        return -torch.tensor([abs(len(seen) - 2.0), abs(len(seen) - 4.0)])

    history = Trainer(objective, settings.training, judge=judge, keep="best").run()
    assert [record.kept for record in history] == [False, True, False, True, False]
    for name, parameter in objective.parameters.items():
        assert torch.equal(parameter[0], seen[1][name][0])
        assert torch.equal(parameter[1], seen[3][name][1])


@pytest.mark.slow
def test_models_of_folds_keep_an_epoch_that_rows_they_do_not_see_like():
    """On chance, the last epoch believes its rows; the folds together like an earlier one."""
    completions, start = chance(60)
    fold = torch.arange(60) % 3
    weights = 1.5 * (fold != torch.arange(3)[:, None])
    table, epochs = completions.completed[0], []

    def unseen(**changes):
        settings = preset_settings("auto", {"epochs": 60, "least_batch": 8, **changes})
        models = [start(seed) for seed in range(3)]
        watch = lambda *at: epochs.append(at)  # noqa: E731
        train_folds(models, completions, weights, fold, settings, seed=0, watch=watch)
        each = [model.log_prob(table[fold == one]) for one, model in enumerate(models)]
        return torch.cat(each).mean().item()

    assert unseen() > unseen(keep_best=False) + 0.05
    assert epochs == 2 * [(epoch, 60) for epoch in range(1, 61)]


def test_rows_that_show_nothing_of_what_is_trained_say_nothing():
    """A batch may have no factor of the trained blocks: its gradient is none, and no error."""
    values, observed = chain_rows()
    observed[:, 2] = False
    models = [chain_model(seed, tied=False) for seed in range(2)]
    rows = MemoryRows(values, observed)
    completions = Completions.draw(models[0].double(), rows, 2, derive_generator(0, "draws"))
    everyone = torch.arange(len(rows))
    weights = torch.ones(2, len(rows))
    likelihood = CompletionLikelihood(
        models, completions, (everyone, everyone[:0]), weights, SETTINGS, 0, blocks={2}
    )
    likelihood.priors = []
    likelihood.gradient(everyone, 0, 0)
    assert all(parameter.grad is None for parameter in likelihood.parameters.values())
