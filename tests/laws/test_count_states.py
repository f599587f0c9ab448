"""Sums over counts reach as far as the evidence asks, not only as far as the prior does."""

import pytest
import torch

from misscnf.data import domains
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.likelihood import observed_log_prob
from misscnf.mechanisms import Count, Gaussian
from misscnf.model import StructuralModel


@pytest.mark.parametrize("seen", [15.0, 20.0, -1.0])
def test_a_count_gets_as_many_states_as_its_evidence_wants(seen):
    # A Poisson count of mean one; x tells that it was seen + 2, beyond any cut of its prior.
    count = Count(0, dispersed=False)
    child = Gaussian([domains.Count()])
    child.set_line(-2.0, [1.0], 0.3)
    graph = CausalGraph.read("n -> x")
    model = StructuralModel(graph, [count, child]).requires_grad_(requires_grad=False)
    observed = torch.tensor([[False, True]])
    generator = torch.Generator().manual_seed(0)
    found = observed_log_prob(
        model, torch.tensor([[0.0, seen]]), Plan.make(graph, observed), generator
    )
    k = torch.arange(300.0)
    x = torch.full_like(k, seen)
    terms = count.log_prob(k, torch.zeros(300, 0)) + child.log_prob(x, k[:, None])
    torch.testing.assert_close(found.log_prob[0], terms.logsumexp(0), rtol=0.0, atol=1e-9)
