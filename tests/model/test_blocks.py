"""Nodes that share a mechanism: one block of parameters, whatever is done with the model."""

import copy

import pytest
import torch

from misscnf.data.domains import CONTINUOUS, Binary, Categorical
from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Gaussian, Shape
from misscnf.model import StructuralModel, Structure
from misscnf.model.storage import load_model, save_model

CHAIN = CausalGraph.read("x0 -> x1 -> x2")
KEYS = ["first", "next", "next"]


def tied(shape=None):
    model = Structure.of(CHAIN, [CONTINUOUS] * 3, KEYS).build(shape or Shape(hidden=(8,))).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
    return model


def normal(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_nodes_of_one_key_have_one_mechanism():
    model = tied()
    assert model.blocks == ((0,), (1, 2))
    assert model.block_of == (0, 1, 1)
    assert model.mechanism(1) is model.mechanism(2) is model.block(1)
    assert len(model.mechanisms) == 2


def test_a_shared_weight_moves_both_nodes():
    model, values = tied(Shape(hidden=())), normal(5, 3)
    before = model.log_factors(values)
    with torch.no_grad():
        model.block(1).mean.bias.add_(1.0)
    after = model.log_factors(values)
    assert torch.equal(before[:, 0], after[:, 0])
    assert (before[:, 1:] != after[:, 1:]).all()


def test_copies_and_models_of_other_mechanisms_keep_the_ties():
    model = copy.deepcopy(tied())
    assert model.mechanism(1) is model.mechanism(2)
    other = model.like([Gaussian(0), Gaussian(1)])
    assert other.blocks == model.blocks
    assert other.keys == model.keys
    assert other.mechanism(1) is other.mechanism(2)


def test_a_tied_model_is_saved_once_and_answers_the_same(tmp_path):
    model = tied()
    save_model(tmp_path, model, {"seed": 3})
    loaded, about = load_model(tmp_path)
    assert about == {"seed": 3}
    assert loaded.blocks == model.blocks
    assert loaded.keys == model.keys
    assert loaded.mechanism(1) is loaded.mechanism(2)
    assert len(list(loaded.parameters())) == len(list(model.parameters()))
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name]), name
    noise = normal(7, 3)
    drawn = model.generate(noise)
    assert torch.equal(drawn, loaded.generate(noise))
    assert torch.equal(model.log_prob(drawn), loaded.log_prob(drawn))
    clamps = {1: torch.tensor(0.5, dtype=torch.float64)}
    found = [m.counterfactual(drawn, clamps) for m in (model, loaded)]
    assert torch.equal(*found)


def test_ties_of_other_kinds_are_refused():
    with pytest.raises(InputError, match="'x1' and 'x2' are to share a mechanism"):
        Structure.of(CHAIN, [CONTINUOUS, Binary(), CONTINUOUS], KEYS)
    with pytest.raises(InputError, match="continuous given continuous"):
        Structure.of(CHAIN, [Categorical(3), CONTINUOUS, CONTINUOUS], KEYS)
    with pytest.raises(InputError, match="share a mechanism"):
        Structure.of(CHAIN, [CONTINUOUS] * 3, ["same", "same", "last"])


def test_one_mechanism_at_two_nodes_serves_both():
    law = Gaussian(1)
    tied = StructuralModel(CHAIN, [Gaussian(0), law, law])
    assert tied.blocks == ((0,), (1, 2))
    assert len(list(tied.parameters())) == 5


def test_keys_and_mechanisms_must_fit():
    law = Gaussian(1)
    with pytest.raises(ValueError, match="need the key of each"):
        StructuralModel(CHAIN, {"first": Gaussian(0), "next": law}, ["first", "next"])
