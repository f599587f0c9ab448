r"""The linear model of any table, fitted to all rows by maximum likelihood.

Where every column is continuous this is full-information maximum likelihood (`linear`). With
discrete columns, each node is a generalised linear model of its parents: logistic, cumulative or
multinomial logits, a negative binomial with a log link, a line with normal noise. What the rows
show has the likelihood of `inference.likelihood`, and by Fisher's identity its gradient,

    ∇ Σ_rows log p(x_O) = Σ_rows E[ Σ_i ∇ log φ_i | x_O ],

is exact wherever the integrals are: sums over discrete nodes, closed forms, quadrature. There the
search follows it with all rows at once. It starts from each block's own fit to the rows that show
a family whole, which on a complete table is already the maximum, and moves in coordinates in which
the information of the table at that start (`sandwich`) is one. Where integrals are drawn, the sum
has steps: a row gets more draws on one side of a point than on the other, and a search that wants
nine digits circles around such a step. Other random numbers show it. The maximum is then that of
completions (`monte_carlo`), whose likelihood is smooth; beside hidden causes, which leave flat
ridges, it is that of as many points for every integral.

A family that every row shows whole has nothing to do with the others: its own fit stays, and the
search does not see it. Where few rows show a family whole, as with sixty parents, they are a poor
start: the block is then fitted to rows that the joint normal law of the graph has completed. A
loss that depends on the value it hides is started from several slopes (`loss_starts`).

So are the families of hidden causes, which no row shows whole: to a normal law a hidden cause is a
factor of its children. A hidden class starts as equal parts of that factor, and of random
directions in the children beside it, since a mixture has lesser maxima; the best start is kept.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from misscnf.data.domains import CONTINUOUS, Latent
from misscnf.data.rows import MemoryRows, RowSource
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.settings import Settings, Solving
from misscnf.fitting.solve.exact import climb, lowest
from misscnf.fitting.solve.factors import anchor
from misscnf.fitting.solve.fisher import likelihood_noise, log_likelihoods, rows_by_chance
from misscnf.fitting.solve.linear import LinearFit, fit_linear_gaussian
from misscnf.fitting.solve.loss_starts import LossStart, start_losses
from misscnf.fitting.solve.monte_carlo import maximise_monte_carlo
from misscnf.fitting.solve.quasi_newton import Maximum, maximise
from misscnf.mechanisms import LinearMean, Shape
from misscnf.mechanisms.history import read_parents_by
from misscnf.model import StructuralModel, Structure

__all__ = ["fit_block", "fit_linear", "with_losses_at_random"]


def fit_linear(
    structure: Structure,
    rows: RowSource,
    settings: Settings | None = None,
    start: StructuralModel | None = None,
    *,
    rough: bool = False,
) -> LinearFit:
    """Fits the linear model to all rows.

    Arguments:
        structure: The graph, its domains and ties.
        rows: The rows.
        settings: Numbers of the search.
        start: A linear model close by, such as the fit to most of these rows; without it, each
            block starts from its own fit. It is left as it is.
        rough: Whether to stop near the maximum where integrals are drawn: a richer model that
            starts there is maximised later. Where a loss depends on the value it hides, the best
            of several starts is enough: the maximum of some of the rows.
    """
    settings = settings or Settings()
    model = structure.build(Shape(hidden=())).double()
    if all(form is not None for form in model.linear_forms()):
        return fit_linear_gaussian(structure, rows, settings.solving)
    apart = _whole_blocks(structure, rows)
    if apart:
        return _fit_apart(structure, apart, rows, settings, start, rough=rough)
    own_losses, starts = structure.graph.own_losses, tuple[LossStart, ...]()
    begun = start or _own_fits(_without_parents(structure, own_losses), rows, settings)
    for block in range(len(structure.blocks)):
        model.block(block).start_from(begun.block(block))
    if own_losses and start is None:
        model, starts = start_losses(model, rows, settings)
        if rough:
            log_prob = max(one.log_prob for one in starts)
            return LinearFit(
                model, log_prob, len(starts), converged=True, starts=starts, near=True
            )
    noise = likelihood_noise(model, rows, settings)
    if noise > settings.solving.most_noise_of_line:
        if structure.graph.latent and noise <= settings.solving.most_noise_of_hidden:
            risen = _climb_evenly(model, rows, settings)
            if risen is not None:
                anchor(model)
                return LinearFit(model, risen.value, risen.iterations, risen.converged, starts)
        rounds = maximise_monte_carlo(model, rows, settings, seed=0, rough=rough)
        anchor(model)
        log_prob = math.nan
        if not rough:
            log_prob = float(log_likelihoods(model, rows, settings, "line").mean())
        return LinearFit(model, log_prob, rounds, converged=True, starts=starts, near=rough)
    # quadrature over hidden causes has an error of its own, and a ninth digit is below it
    least_gain = 0.01 * settings.solving.newton_tolerance if structure.graph.latent else None
    found = climb(model, rows, settings, least_gain=least_gain)
    anchor(model)
    return LinearFit(model, found.value, found.iterations, found.converged, starts)


def _climb_evenly(model: StructuralModel, rows: RowSource, settings: Settings) -> Maximum | None:
    """Moves a model to the maximum of a likelihood with as many points for every integral.

    The flat ridges that hidden causes leave are climbed to their end only without steps on them.
    Whether the place is higher is judged by as many points as each integral takes: evidence that
    has become steep may look better than it is. If it is not, nothing is moved, and none returned.
    """
    begun = {name: value.clone() for name, value in model.state_dict().items()}
    before = log_likelihoods(model, rows, settings, "line").mean()
    integration = replace(settings.integration, linear=settings.integration.linear.even())
    least_gain = 0.1 * settings.solving.newton_tolerance
    even = replace(settings, integration=integration)
    found = climb(model, rows, even, least_gain=least_gain)
    reached = log_likelihoods(model, rows, settings, "line").mean()
    if reached < before:
        model.load_state_dict(begun)
        return None
    return replace(found, value=float(reached))


def _own_fits(structure: Structure, rows: RowSource, settings: Settings) -> StructuralModel:
    """Returns a linear model of which each block is fitted by itself.

    Where there are hidden classes, it is the best of several, after some steps of a search.
    """
    seldom, solving = _seldom_whole(structure, rows, settings.solving), settings.solving
    classes = any(structure.graph.latent.values())
    completed = _completed(structure, rows, settings) if seldom else None
    starts = []
    for number in range(solving.starts if classes else 1):
        one = structure.build(Shape(hidden=())).double()
        shown: RowSource = completed or rows
        if number and completed is not None:
            shown = _with_other_classes(structure, completed, number)
        for block in range(len(structure.blocks)):
            fit_block(one, structure, block, shown if block in seldom else rows, solving)
        steps = solving.start_steps
        reached = climb(one, rows, settings, steps, white=False).value if classes else 0.0
        starts.append((reached, one))
    return max(starts, key=lambda start: start[0])[1]


def with_losses_at_random(
    model: StructuralModel,
    structure: Structure,
    indicators: Collection[int],
    rows: RowSource,
    settings: Settings,
) -> StructuralModel:
    """Returns a linear model in which some losses depend on nothing.

    Where a mean bends, the slope of a loss takes what its line misses: as steep a slope as one
    likes, from which a network does not find back.
    """
    alone = _without_parents(structure, indicators)
    roots, found = (one.build(Shape(hidden=())).double() for one in (alone, structure))
    for block, nodes in enumerate(structure.blocks):
        if set(nodes).isdisjoint(indicators):
            found.block(block).start_from(model.block(block))
        else:
            fit_block(roots, alone, block, rows, settings.solving)
            found.block(block).start_from(roots.block(block))
    return found


def _without_parents(structure: Structure, alone: Collection[int]) -> Structure:
    """Returns the structure in which some nodes have no parents."""
    return Structure.of(structure.graph.without_parents(alone), structure.domains, structure.keys)


def _whole_blocks(structure: Structure, rows: RowSource) -> list[int]:
    """Returns the blocks with parents whose families every row shows whole."""
    shown = torch.ones(rows.columns, dtype=torch.bool)
    for batch in rows.batches():
        shown &= batch.observed.all(0)
    families = structure.graph.families
    return [
        block
        for block, nodes in enumerate(structure.blocks)
        if all(len(families[i]) > 1 and bool(shown[list(families[i])].all()) for i in nodes)
    ]


def _seldom_whole(structure: Structure, rows: RowSource, settings: Solving) -> list[int]:
    """Returns the blocks whose families few of the rows show whole that show the node itself."""
    graph = structure.graph
    whole, shown = torch.zeros(len(graph)), torch.zeros(len(graph))
    for batch in rows.batches():
        shown += batch.observed.sum(0)
        whole += torch.stack([batch.observed[:, f].all(1).sum() for f in graph.families])
    least = settings.least_whole
    return [
        block
        for block, nodes in enumerate(structure.blocks)
        if float(whole[list(nodes)].sum()) < least * float(shown[list(nodes)].sum())
    ]


def _completed(structure: Structure, rows: RowSource, settings: Settings) -> MemoryRows:
    """Returns rows with what is hidden drawn as if all columns were normal; barren cells stay.

    Hidden classes are equal parts of what is a factor of their children to a normal law.
    """
    rows = rows_by_chance(rows, settings.solving.whitening_rows)
    batches = list(rows.batches())
    values = torch.cat([batch.values for batch in batches]).double()
    observed = torch.cat([batch.observed for batch in batches])
    count = observed.sum(0).clamp(min=1)
    centre = torch.where(observed, values, 0.0).sum(0) / count
    spread = (torch.where(observed, values - centre, 0.0).square().sum(0) / count).sqrt()
    spread = torch.where(spread > 0.0, spread, 1.0)
    graph, hidden = structure.graph, structure.graph.latent_nodes
    domains = [
        Latent() if i in hidden else domain if domain.kind == "fixed" else CONTINUOUS
        for i, domain in enumerate(structure.domains)
    ]
    lines = {i: reading.as_line() for i, reading in graph.readings.items()}
    numbers = Structure.of(graph.with_readings(lines), domains, structure.keys)
    units = MemoryRows(torch.where(observed, (values - centre) / spread, 0.0), observed)
    normal = fit_linear_gaussian(numbers, units, settings.solving).model
    drawn = Completions.draw(normal, units, 1, derive_generator(0, "normal law"))
    filled = drawn.completed[0] * spread + centre
    for node, domain in enumerate(structure.domains):
        if node in hidden and domain.states is not None:
            filled[:, node] = _equal_parts(drawn.completed[0][:, node], domain.states)
        else:
            filled[:, node] = domain.nearest(filled[:, node])
    return MemoryRows(torch.where(observed, values, filled), ~drawn.plan.barren())


def _with_other_classes(structure: Structure, rows: MemoryRows, number: int) -> MemoryRows:
    """Returns completed rows with hidden classes that are parts of a random direction instead."""
    values, graph = rows.values.clone(), structure.graph
    generator = derive_generator(number, "classes")
    for node in sorted(graph.latent_nodes):
        states = structure.domains[node].states
        if states is not None:
            children = values[:, list(graph.children[node])]
            children = (children - children.mean(0)) / children.std(0).clamp(min=1e-9)
            along = torch.randn(children.shape[1], generator=generator).to(children)
            values[:, node] = _equal_parts(children @ along, states)
    return MemoryRows(values, rows.observed)


def _equal_parts(along: Tensor, parts: int) -> Tensor:
    """Returns which of so many equally large parts each number is in, (n,)."""
    ranks = torch.argsort(torch.argsort(along, stable=True), stable=True)
    return (ranks * parts // len(along)).to(along)


def _fit_apart(
    structure: Structure,
    apart: list[int],
    rows: RowSource,
    settings: Settings,
    start: StructuralModel | None,
    *,
    rough: bool,
) -> LinearFit:
    """Fits some blocks by themselves, and the others in a graph where these have no parents."""
    alone = {i for block in apart for i in structure.blocks[block]}
    rest = _without_parents(structure, alone)
    begun = None
    if start is not None:
        roots, blocks = rest.build(Shape(hidden=())).double(), range(len(rest.blocks))
        for block in apart:
            fit_block(roots, rest, block, rows, settings.solving)
        begun = rest.model([(roots if b in apart else start).block(b) for b in blocks])
    found = fit_linear(rest, rows, settings, begun, rough=rough)
    model = structure.build(Shape(hidden=())).double()
    for block in apart:
        fit_block(model, structure, block, rows, settings.solving)
    for block in set(range(len(structure.blocks))).difference(apart):
        model.block(block).start_from(found.model.block(block))
    gained = 0.0
    with torch.no_grad():
        for batch in rows.batches():
            for node in alone:
                every = torch.arange(len(batch.values))
                for sign, its in ((1.0, model), (-1.0, found.model)):
                    own, of = its.family_of(batch.values, node, every)
                    gained += sign * float(its.mechanism(node).log_prob(own, of).sum())
    return replace(found, model=model, log_prob=found.log_prob + gained / len(rows))


def fit_block(
    model: StructuralModel, structure: Structure, block: int, rows: RowSource, settings: Solving
) -> None:
    """Fits one mechanism to the rows that show the whole family of a node that it serves."""
    mechanism = model.block(block)
    if next(mechanism.parameters(), None) is None:  # as of a number that is known beforehand
        return
    mechanism.start(structure.domain_of(block))
    families = [[node, *structure.graph.parents[node]] for node in structure.blocks[block]]
    count = sum(
        int(batch.observed[:, family].all(1).sum())
        for batch in rows.batches()
        for family in families
    )
    if not count:
        mechanism.start_unseen(settings.unseen_slope)
        return

    def whole() -> Iterator[tuple[Tensor, Tensor]]:
        for batch in rows.batches():
            for family in families:
                shown = batch.values[batch.observed[:, family].all(1)][:, family]
                read = read_parents_by(structure.graph.readings.get(family[0]), shown[:, 1:])
                yield shown[:, 0], read

    def log_likelihood() -> float:
        total = 0.0
        for own, parents in whole():
            log_prob = mechanism.log_prob(own, parents).sum() / count
            log_prob.backward()
            total += float(log_prob.detach())
        return total

    mean = mechanism.linear_mean()
    if mean is not None and mean.constant_scale:  # least squares are its maximum, or close to it
        _start_at_least_squares(mean, whole(), count)
    maximise(mechanism.parameters(), log_likelihood, lowest=lowest([mechanism]))


def _start_at_least_squares(
    mean: LinearMean, shown: Iterable[tuple[Tensor, Tensor]], count: int
) -> None:
    """Gives a mean the coefficients and the scale of least squares, from cells and parents."""
    size = len(mean.coefficients)
    products = torch.zeros(size + 1, size + 1, dtype=torch.float64)
    for own, parents in shown:
        columns = torch.cat([mean.columns(parents), own[:, None]], 1).double()
        products += columns.T @ columns
    of_columns, with_own = products[:size, :size], products[:size, size]
    found = torch.linalg.pinv(of_columns, hermitian=True) @ with_own
    variance = float(products[size, size] - found @ with_own) / count
    mean.write(found, torch.full((1,), 0.5 * math.log(max(variance, 1e-12)), dtype=torch.float64))
