r"""Curves of nodes with hidden parents: rows that were left out decide, by their own likelihood.

No row shows such a family whole, so nothing can be regressed and nothing be looked at. What stands
in its place:

1. The score test (`nonlinearity`) is of the likelihood of what rows show, whatever they hide: it
   says who asks, with the level shared among all that may.
2. A curve rests on a basis whose prior the evidence chooses, as elsewhere, from rows of which
   hidden parents were completed once. A curve that beats its line only on completions by that
   curve would be circular: the model with the curve is fitted to the rows (`solve.exact`), and has
   to beat the model without on the likelihood of other rows, by z standard errors.
3. What is asked for first is the least: a curve in the parents that are shown, beside a line in
   those that are hidden,

       x = b + w · u + c(x_shown) + σ ε.

   Given what is shown it is linear in u, so the integral keeps its closed form. Only what still
   asks after that tries a curve in hidden parents too, and only where the integral is a quadrature
   then, over one number: on drawn integrals such a fit does not come to rest.

All that ask for the first are tried together, and one by one where together they lose. What bends
in a hidden cause makes its neighbours look bent, so the second is tried for the loudest alone, and
the others are asked again.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from misscnf.data.rows import RowSource
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.select.forms import with_mechanisms
from misscnf.fitting.select.given import Given, some_rows
from misscnf.fitting.select.nonlinearity import nonlinearity_p_values
from misscnf.fitting.smooth.basis import find_basis, fit_curve
from misscnf.fitting.solve.exact import climb, climb_exact, is_exact, without_networks
from misscnf.fitting.solve.fisher import rows_by_chance
from misscnf.fitting.solve.monte_carlo import maximise_monte_carlo
from misscnf.inference.elimination import Plan
from misscnf.inference.likelihood import observed_log_prob
from misscnf.mechanisms import Gaussian, Mechanism
from misscnf.model import StructuralModel

__all__ = ["Bent", "bend_beside_hidden"]


@dataclass(frozen=True)
class Bent:
    """Which nodes with hidden parents got a curve."""

    model: StructuralModel
    """fitted to the rows that learned"""
    curves: frozenset[int]
    """by block"""
    gains: Mapping[int, ElpdDifference]
    """what curves gain over lines on rows that were left out, by block; of all that won together
    where they were tried together"""
    p_values: Mapping[int, float]
    """how likely the rows are under the line of each block that may bend"""


def bend_beside_hidden(model: StructuralModel, given: Given, held_out: RowSource) -> Bent | None:
    """Gives curves to nodes with hidden parents that earn one; None where none asks.

    Arguments:
        model: The fit, of which such nodes have lines. It is left as it is.
        given: Structure, rows to learn from, settings and seed.
        held_out: Rows that judge.
    """
    structure, selection = given.structure, given.selection
    may = [
        block
        for block in range(len(model.blocks))
        if structure.may_bend_beside_hidden(block)
        and "curve" in model.block(block).growths
        and not given.wide(block)
    ]
    if not may or not selection.curves:
        return None
    given = given.fewer(selection.hidden_rows)
    judges = some_rows(held_out, replace(selection, most_rows=selection.hidden_rows), given.seed)
    search = _Search(copy.deepcopy(model), given, judges)
    search.fit(search.model)
    p_values = search.p_values(may)
    asking = search.asking(may)
    if not search.attempt(asking) and len(asking) > 1:
        for block in asking:
            search.attempt([block])
    left = [block for block in may if not search.hides_more(block)]
    while asking := [block for block in search.asking(may) if block in left]:
        search.attempt(asking[:1], hidden_too=True)
        left.remove(asking[0])
    if not search.curves:
        return None
    return Bent(search.model, frozenset(search.curves), search.gains, p_values)


class _Search:
    """A model that grows."""

    def __init__(self, model: StructuralModel, given: Given, judges: RowSource) -> None:
        self.model, self.given, self.judges = model, given, judges
        self.hidden = given.structure.graph.latent_nodes
        self.curves = set[int]()
        self.gains = dict[int, ElpdDifference]()
        self._judged: Tensor | None = None
        self._completed: Completions | None = None
        self._said = dict[int, float]()

    def fit(self, model: StructuralModel, *, near: bool = False) -> None:
        """Moves a model near its maximum on the rows that learn, in place."""
        settings, rows = self.given.settings, self.given.rows
        solved = without_networks(model, self.given.structure, rows)
        if solved is None or not climb_exact(solved, rows, settings, rough=True, near=near):
            maximise_monte_carlo(model, rows, settings, self.given.seed, rough=True)

    def complete(self) -> Completions:
        """Returns completions of the rows by the model as it is."""
        if self._completed is None:
            self._completed = self.given.complete(self.model, "beside hidden")
        return self._completed

    def p_values(self, blocks: list[int]) -> dict[int, float]:
        """Returns how likely the rows are under each mechanism as it is."""
        if not self._said.keys() >= set(blocks):
            about = (self.given.selection, self.given.seed)
            self._said = nonlinearity_p_values(self.model, self.complete(), blocks, *about)
        return self._said

    def hides_more(self, block: int) -> bool:
        """Says whether all rows hide several numbers together around a block.

        A curve in one of them makes a drawn integral of every row, on which no fit comes to rest.
        """
        components = Plan.of(self.model.graph, self.given.rows).components()
        nodes = torch.tensor(self.given.structure.blocks[block])
        around = torch.isin(components.evidence_node, nodes)
        beside = components.evidence_component[around].unique()
        of = torch.cat(
            [beside, components.cell_component[torch.isin(components.cell_node, nodes)]]
        )
        return len(of) > 0 and bool((components.size[of] > 1).all())

    def asking(self, blocks: list[int]) -> list[int]:
        """Returns the blocks that ask for more, the loudest first."""
        said = self.p_values(blocks)
        level = self.given.selection.network_p_value / len(blocks)
        return sorted((b for b in blocks if said[b] < level), key=said.__getitem__)

    def attempt(self, blocks: list[int], *, hidden_too: bool = False) -> bool:
        """Takes curves of some blocks if rows that were left out ask for them; says whether."""
        laws = {b: law for b in blocks if (law := self._curve(b, hidden_too=hidden_too))}
        if not laws:
            return False
        trial = with_mechanisms(copy.deepcopy(self.model), laws)
        if hidden_too and not is_exact(trial, self.given.rows, self.given.settings):
            return False
        if self._judged is None:
            self._judged = self._judge(self.model)
        if hidden_too and not self._promises(trial):
            return False
        self.fit(trial, near=hidden_too)
        judged = self._judge(trial)
        gain = ElpdDifference.of(judged - self._judged)
        if gain.ratio < self.given.selection.z_alone:
            return False
        self.model, self._judged = trial, judged
        self._completed, self._said = None, {}
        self.curves |= laws.keys()
        self.gains |= dict.fromkeys(laws, gain)
        return True

    def _promises(self, trial: StructuralModel) -> bool:
        """Moves a trial near its maximum on a few of the rows; says whether it may win there.

        Most that lose show it here, which spares them a quadrature of all rows that learn. With
        twice the rows a curve gains about one standard error at most.
        """
        assert self._judged is not None
        settings = self.given.settings
        some = rows_by_chance(self.given.rows, settings.solving.climb_rows)
        solved = without_networks(trial, self.given.structure, some)
        if solved is None:
            return True  # a quadrature beside networks of families that rows hide
        climb(solved, some, settings, least_gain=settings.solving.newton_tolerance)
        gain = ElpdDifference.of(self._judge(trial) - self._judged)
        return gain.ratio >= self.given.selection.z

    def _judge(self, model: StructuralModel) -> Tensor:
        """Returns the log-density of what each row that was left out shows."""
        rows = self.judges.take(torch.arange(len(self.judges)))
        plan = Plan.of(model.graph, self.judges)
        generator = derive_generator(self.given.seed, "beside hidden")
        effort = self.given.settings.integration.validation
        return observed_log_prob(model, rows.values, plan, generator, effort).log_prob

    @torch.no_grad()
    def _curve(self, block: int, *, hidden_too: bool) -> Mechanism | None:
        """Returns a curve to start from, in the shown parents or in all; None for none."""
        structure, completed = self.given.structure, self.complete().completed[0]
        law = self.model.block(block)
        if law.linear_mean() is None:
            return None
        observed = torch.cat([batch.observed for batch in self.given.rows.batches()])
        families = [[*structure.graph.parents[i], i] for i in structure.blocks[block]]
        rows = torch.cat([completed[observed[:, its[-1]]][:, its] for its in families])
        x, y, parents = rows[:, :-1], rows[:, -1], families[0][:-1]
        features, domains = law.features(x), structure.parents_of(block)
        bends = [hidden_too or j not in self.hidden for j in parents]
        if not any(b and d.states is None for d, b in zip(domains, bends, strict=True)):
            return None  # nothing of it could bend
        wide = torch.tensor([domain.features for domain in domains])
        places = torch.tensor(bends).repeat_interleave(wide)
        columns, others = places.nonzero()[:, 0].tolist(), (~places).nonzero()[:, 0]
        generator = self.given.generator("centres", families[0][-1])
        about = (len(self.given.rows), len(y), generator, self.given.settings.curves)
        basis = find_basis(features[:, columns], y, *about)
        if basis is None:
            return None
        some = [d for d, b in zip(domains, bends, strict=True) if b]
        own = fit_curve(basis, some, x[:, torch.tensor(bends)], y)
        found = basis.among(columns, features.shape[1]).mechanism(domains)
        _start(found, own, torch.tensor(columns), law, others)
        return found


def _start(
    found: Gaussian, own: Gaussian, columns: Tensor, line: Mechanism, others: Tensor
) -> None:
    """Gives a curve the coefficients of one in some features, and those of a line in the others.

    What the line says of the others was noise to that curve.
    """
    mean, its, was = found.linear_mean(), own.linear_mean(), line.linear_mean()
    assert mean is not None
    assert its is not None
    assert was is not None
    coefficients, slopes = mean.coefficients, was.coefficients[1 + others]
    before, of_line, of_curve = its.coefficients.split(
        [1, len(columns), len(its.coefficients) - 1 - len(columns)]
    )
    coefficients[0], coefficients[1 + columns], coefficients[1 + others] = before, of_line, slopes
    coefficients[1 + len(columns) + len(others) :] = of_curve
    variance = float(own.log_scale.bias.exp()) ** 2
    left = max(variance - float(slopes.square().sum()), 0.1 * variance)
    mean.write(coefficients, torch.tensor([0.5 * math.log(left)], dtype=torch.float64))
