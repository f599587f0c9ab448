r"""MIRACLE: a small network for each column, read along a causal graph, refines an imputation.

Every column j, and every indicator r_m of a column m that has holes (1 where it is seen), is a
node with a network of its own; only the middle layer is shared:

    h = ELU(ELU(x (W_i ∘ A_i) + b_i) W + b),    out_i = h · v_i + c_i

A_i says which columns node i may read. With a graph it reads its parents, and an indicator reads
what the loss depends on (O-MIRACLE, the paper's oracle). Without one it reads all columns but
itself, and the graph is learned: rows of W_i are held small, and cycles are charged for. On a
batch of B rows,

    L = (1 + λ B) · SE / B + CE / B + μ R [ + β Σ_i Σ_{j≠i} |W_i[j]| + h²/2 + h ]
    SE = Σ (x − out)² over observed cells,   CE = cross-entropies of the indicators
    R = Σ_m (mean out_m − Σ x_m r_m w_m / Σ w_m)²,   w_m = 1.02 / (σ(out_{r_m}) + 1.01)
    h = tr exp Z − d,   Z[j, i] = |W_i[j]|²            (a cycle of length l adds to tr Z^l)

and what is in brackets is for a learned graph. Holes start at their column's mean; after the first
`window` epochs each epoch fills them with the mean of that many predictions, and so does the end.

A network sees only what its node may read: with the graph x1 → x2 → x3, a hole in x2 is filled
from x1 alone, never from x3, so the answer is a mean given the parents, not given the row.

Presets: "paper" is the paper's (Appendix "Implementation details"); "fast" has half its epochs in
batches of 1024, a rate twenty times as high, and λ such that λ B is the same.

References:
    Kyono et al., MIRACLE: causally-aware imputation via learning missing data mechanisms, 2021.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional

from misscnf import CausalGraph, GraphLike, InputError
from misscnf.draws import derive_generator
from misscnf_study.rivals.contract import Floats
from misscnf_study.rivals.learned import LearnedImputer, Watch, choose_preset, positive

__all__ = [
    "Miracle",
    "MiracleSettings",
    "NodeNetworks",
    "PRESETS",
    "acyclicity",
    "group_norms",
    "moment_gap",
    "reconstruction_loss",
]

NUMBERS_AT_ONCE = 400_000
"""Predictions for all rows are made in pieces of so many hidden units, which stay in the cache."""
SHIFT = 1.01
"""What is added to a chance of being seen before dividing by it. The authors' code has this
number where 0.01 is evidently meant: weights lie between 0.51 and 1.01, almost inert."""
TINY = 1e-12
"""Under the roots of norms, which have no slope at zero."""


@dataclass(frozen=True)
class MiracleSettings:
    """How networks are trained; the defaults are the paper's."""

    width: int = 32
    """Units in each of the two hidden layers."""
    epochs: int = 399
    """Passes over the rows (the authors' 400 steps begin at 1)."""
    batch: int = 32
    """Rows in a step of training."""
    rate: float = 1e-4
    """Adam's learning rate."""
    window: int = 10
    """How many predictions are averaged."""
    fit_weight: float = 0.1
    """λ, of squared errors summed over a batch, beside their mean."""
    moment_weight: float = 0.1
    """μ, of the gap between predicted and weighted means."""
    sparsity: float = 0.1
    """β, of the norms of what networks read; only where the graph is learned."""
    authors_batching: bool = False
    """Whether batches are those of the authors' code: rows are shuffled but what is observed in
    them is not, so that errors are counted at the holes of other rows; the first batch is left
    out and the last one is what remains, or nothing."""

    def __post_init__(self) -> None:
        positive(self, "width", "epochs", "batch", "rate", "window")


PRESETS = {
    "paper": MiracleSettings(),
    "fast": MiracleSettings(epochs=200, batch=1024, rate=2e-3, fit_weight=0.1 * 32 / 1024),
}


class NodeNetworks(nn.Module):
    """The networks of all nodes: d columns and then k indicators.

    Arguments:
        reads: (d + k, d), 1 where a node may read a column.
        width: Hidden units.
        generator: Where weights come from; nodes begin alike, as in the authors' code.
    """

    def __init__(self, reads: Tensor, width: int, generator: torch.Generator) -> None:
        super().__init__()
        nodes, columns = reads.shape

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator, dtype=torch.float32)

        def alike(number: Tensor) -> nn.Parameter:
            return nn.Parameter(number.expand(nodes, *number.shape).clone())

        self.reads: Tensor
        self.register_buffer("reads", reads.to(torch.float32)[:, :, None])
        self.entry = alike(0.01 * normal(columns, width))  # (nodes, d, width)
        self.entry_bias = alike(0.01 * normal(width))
        self.middle = nn.Parameter(normal(width, width))
        self.middle_bias = nn.Parameter(normal(width))
        self.exit = alike(normal(width))
        self.exit_bias = alike(normal(1)[0])

    def forward(self, x: Tensor) -> Tensor:
        """Returns values and logits of being seen for rows (N, d), (N, d + k)."""
        nodes, columns, width = self.entry.shape
        links = self.links.transpose(0, 1).reshape(columns, nodes * width)
        h = functional.elu(torch.addmm(self.entry_bias.reshape(-1), x, links)).view(-1, width)
        h = functional.elu(torch.addmm(self.middle_bias, h, self.middle))
        return (h.view(-1, nodes, width) * self.exit).sum(dim=-1) + self.exit_bias

    @property
    def links(self) -> Tensor:
        """W ∘ A, (nodes, d, width)."""
        return self.entry * self.reads


def reconstruction_loss(
    out: Tensor, x: Tensor, observed: Tensor, seen: Tensor, fit_weight: float
) -> Tensor:
    """Returns (1 + λ B) · SE / B + CE / B.

    Arguments:
        out: (B, d + k), values of the columns and logits of the indicators.
        x: (B, d)
        observed: (B, d), where errors count.
        seen: (B, k), the indicators as numbers.
        fit_weight: λ.
    """
    values, logits = out.split([x.shape[1], seen.shape[1]], dim=1)
    squares = (observed * (x - values) ** 2).sum()
    surprise = functional.binary_cross_entropy_with_logits(logits, seen, reduction="sum")
    return (1.0 / len(x) + fit_weight) * squares + surprise / len(x)


def moment_gap(out: Tensor, x: Tensor, observed: Tensor, columns: Sequence[int]) -> Tensor:
    """Returns R, the gap between predicted means and weighted ones of the columns with holes."""
    values, logits = out.split([x.shape[1], len(columns)], dim=1)
    weights = 1.02 / (torch.sigmoid(logits) + SHIFT)
    weighted = (observed * x)[:, columns].mul(weights).sum(dim=0) / weights.sum(dim=0)
    return ((values[:, columns].mean(dim=0) - weighted) ** 2).sum()


def acyclicity(links: Tensor) -> Tensor:
    """Returns h for the networks of columns (d, d, width): zero without cycles.

    Z is a sum of squares: by way of norms, their roots at zero would have no gradient.
    """
    z = (links**2).sum(dim=2).T
    return torch.linalg.matrix_exp(z).diagonal().sum() - len(z)


def group_norms(entry: Tensor) -> Tensor:
    """Returns Σ_i Σ_{j≠i} |W_i[j]| over all nodes i and columns j, for W (nodes, d, width)."""
    norms = ((entry**2).sum(dim=2) + TINY).sqrt()
    return norms.sum() - norms.diagonal().sum()


@final
class Miracle(LearnedImputer):
    """Fills with what each column's network says.

    The table learned from comes back as the epochs left it; new rows start at the means and go
    through the networks `window` times.

    Arguments:
        preset: A key of `PRESETS`, or settings.
        graph: The causal graph over the columns, in any form that `CausalGraph.read` takes;
            learned if None.
        causes: What the loss of each column depends on, by name; only with a graph. Columns that
            are left out lose their values by chance.
        device: Where to train, such as "cpu" or "cuda".
        watch: Called as training goes on.
    """

    def __init__(
        self,
        preset: str | MiracleSettings = "fast",
        *,
        graph: GraphLike | None = None,
        causes: Mapping[str, Sequence[str]] | None = None,
        device: str = "cpu",
        watch: Watch | None = None,
    ) -> None:
        super().__init__(device, watch)
        self.settings = choose_preset(preset, PRESETS, "MIRACLE")
        if graph is None and causes:
            raise InputError("what the loss depends on is used with a graph only; give both.")
        self.graph = None if graph is None else CausalGraph.read(graph)
        self.causes = dict(causes or {})

    def strengths(self) -> pd.DataFrame:
        """Returns how strongly each column's network reads each column, |W_i[j]| at [j, i]."""
        self._known_columns(pd.DataFrame(columns=getattr(self, "_columns", [])))
        norms = self._networks.links[: len(self._columns)].square().sum(dim=2).sqrt()
        return pd.DataFrame(norms.T.cpu().numpy(), index=self._columns, columns=self._columns)

    def _train_and_fill(self, values: Floats) -> Floats:
        x, observed = self._read_units(values)
        self._incomplete = torch.nonzero(~observed.all(dim=0)).squeeze(1).tolist()
        self._networks = NodeNetworks(
            self._reads(), self.settings.width, derive_generator(self._seed, "miracle", "networks")
        ).to(self.device)
        x = self._refine(x, observed)
        self._networks.requires_grad_(requires_grad=False)
        return self._units.restore(x)

    def _fill_new(self, values: Floats) -> Floats:
        x, observed = self._read_units(values)
        for _ in range(self.settings.window):
            x = torch.where(observed, x, self._predict(x))
        return self._units.restore(x)

    def _reads(self) -> Tensor:
        """Returns which columns each node may read, (d + k, d)."""
        names, d = [str(name) for name in self._columns], len(self._columns)
        if self.graph is None:
            return torch.cat([1.0 - torch.eye(d), torch.ones(len(self._incomplete), d)])
        _check_names(names, self.graph, self.causes)
        reads = torch.zeros(d + len(self._incomplete), d)
        for i, name in enumerate(names):
            for parent in self.graph.parents_of(name):
                reads[i, names.index(parent)] = 1.0
        for m, j in enumerate(self._incomplete):
            for cause in self.causes.get(names[j], ()):
                reads[d + m, names.index(cause)] = 1.0
        return reads

    def _refine(self, x: Tensor, observed: Tensor) -> Tensor:
        """Trains and returns the completed values, (N, d)."""
        s = self.settings
        generator = derive_generator(self._seed, "miracle", "batches", device=self.device)
        optimiser = torch.optim.Adam(self._networks.parameters(), lr=s.rate, fused=True)
        recent: deque[Tensor] = deque(maxlen=s.window)
        for epoch in range(1, s.epochs + 1):
            if epoch > s.window:
                x = _filled(x, observed, recent)
            for rows, places in self._batches(len(x), generator):
                optimiser.zero_grad(set_to_none=True)
                loss = self._loss(x[rows], observed[rows], observed[places])
                loss.backward()
                optimiser.step()
            recent.append(self._predict(x))
            if not bool(torch.isfinite(recent[-1]).all()):
                raise InputError(
                    f"MIRACLE's predictions are not finite after epoch {epoch}; "
                    f"give a learning rate below {s.rate:g}."
                )
            self._watch("training", epoch, s.epochs)
        return _filled(x, observed, recent)

    def _loss(self, x: Tensor, observed: Tensor, counted: Tensor) -> Tensor:
        s, d = self.settings, x.shape[1]
        out = self._networks(x)
        seen = observed[:, self._incomplete].to(x.dtype)
        loss = reconstruction_loss(out, x, counted, seen, s.fit_weight)
        if self._incomplete:
            loss = loss + s.moment_weight * moment_gap(out, x, counted, self._incomplete)
        if self.graph is None:
            h = acyclicity(self._networks.links[:d])
            loss = loss + s.sparsity * group_norms(self._networks.entry) + h**2 / 2.0 + h
        return loss

    def _batches(self, n: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Yields rows, and the rows whose observed cells are taken for theirs."""
        order = torch.randperm(n, generator=generator, device=self.device)
        if not self.settings.authors_batching:
            for rows in order.split(self.settings.batch):
                yield rows, rows
            return
        size = min(self.settings.batch, max(1, n // 2))
        places = torch.arange(n, device=self.device)
        for first in range(size, n, size):
            yield order[first : first + size], places[first : first + size]

    @torch.no_grad()
    def _predict(self, x: Tensor) -> Tensor:
        """Returns what the networks of columns say of rows (N, d), (N, d)."""
        units = len(self._networks.exit) * self.settings.width
        pieces = x.split(max(1, NUMBERS_AT_ONCE // units))
        return torch.cat([self._networks(piece)[:, : x.shape[1]] for piece in pieces])


def _filled(x: Tensor, observed: Tensor, recent: Sequence[Tensor]) -> Tensor:
    return torch.where(observed, x, sum(recent, torch.zeros_like(x)) / len(recent))


def _check_names(
    names: list[str], graph: CausalGraph, causes: Mapping[str, Sequence[str]]
) -> None:
    if set(names) != set(graph.nodes):
        raise InputError(
            f"the graph is over {', '.join(graph.nodes)}, the table has {', '.join(names)}; "
            f"each column needs a node and each node a column."
        )
    unknown = {*causes, *(cause for listed in causes.values() for cause in listed)} - set(names)
    if unknown:
        raise InputError(
            f"what the loss depends on names {', '.join(sorted(unknown))}, which are no columns."
        )
