r"""The front door: a table with holes and a graph in, answers out.

    model = MissCNF("age -> dose; age -> outcome; dose -> outcome").fit(df)
    model.effect("outcome", do={"dose": 1.0}, versus={"dose": 0.0})

DataFrames go in and come out, in the user's units. The model is fitted by maximising the
likelihood of what each row shows: no row is dropped and nothing is imputed first. Every answer
then comes from that one model.

It is an estimator of scikit-learn too: arrays are tables with the columns x0, x1, …, and
graph="ordered", where each column depends on all before it, needs no knowledge of causes:

    p(x) = Π_i p(x_i | x_0, …, x_{i−1}),

which any joint law can be written as. That is a model of densities and imputations without a
causal claim: it says nothing about interventions.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from misscnf.data.column_names import ArrayLike, name_columns
from misscnf.data.kinds import Kinds
from misscnf.data.rows import MemoryRows, RowSource, SelectedRows
from misscnf.data.table import IncompleteTable, Table, read_table
from misscnf.data.ties import Ties
from misscnf.display.notebook import card
from misscnf.display.progress import ProgressBar, Shown
from misscnf.draws import derive_generator
from misscnf.errors import InputError
from misscnf.estimators.fitted import FittedFlow, facts
from misscnf.estimators.inputs import InputReader, Inputs
from misscnf.fitting.fit import Fitted, fit_model
from misscnf.fitting.many_rows import fit_many
from misscnf.fitting.select.roughness import Rough
from misscnf.fitting.settings import Settings, preset_settings
from misscnf.fitting.train.loop import EpochRecord
from misscnf.graph import CausalGraph, GraphLike
from misscnf.graph.indicators import Loss
from misscnf.graph.latents import Latent
from misscnf.identification import (
    denied_by_rows,
    uncovered_families,
    unlikely_values,
    warning_sentence,
)
from misscnf.identification.settings import CheckSettings
from misscnf.model import Structure
from misscnf.queries.asking import Asked, Cache
from misscnf.queries.support import rough_sentence
from misscnf.workers import workers

__all__ = ["HoleyMixin", "MissCNF"]

logger = logging.getLogger("misscnf")


class HoleyMixin:
    """Tells scikit-learn that holes are welcome."""

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 - scikit-learn's Tags, new in 1.6
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        return tags

    def _more_tags(self) -> dict[str, Any]:
        return {"allow_nan": True, "preserves_dtype": [np.float64]}  # scikit-learn before 1.6


class MissCNF(HoleyMixin, FittedFlow, BaseEstimator):
    """A causal normalizing flow, fitted to an incomplete table.

    Arguments:
        graph: The causal graph, in any form that `CausalGraph.read` takes; or "ordered", where
            every column points to all later ones of the table: a model of the density, without a
            causal claim.
        preset: "auto", "linear" or "paper", or `Settings`.
        kinds: What kind columns are, such as `{"stage": "ordinal"}`, "continuous" for all, or the
            path of a .json or .yaml file; the others are inferred from their values.
        unseen: What becomes of a level that was not seen at fit: "error" refuses it, "missing"
            makes it a hole.
        seed: Where randomness starts; the same seed on one machine gives the same bits.
        device: Where networks are trained, such as "cpu" or "cuda".
        settings: Changes to the preset, such as `{"epochs": 20}`.
        blocks: Names of blocks with their members, such as `{"confounders": ["age", "sex"]}`:
            columns among which no arrow is claimed. The name stands for them in the graph.
        loss: What drives the loss of values, such as `{"y": ["y", "dose"]}`, or "self": every
            column with holes by itself and its parents. The same as arrows into `missing(y)` in
            the graph; None takes holes as lost at random.
        auxiliary: Columns that help to tell what is lost, such as `["income"]`, without a place in
            the graph: they are modelled below everything, and no cause is claimed.
        latent: Nodes of the graph that nobody measures, such as `["u"]`, or `{"class": 3}` for a
            class of three levels (docs/hidden.md).
        id: The column that says who, in a long table with a row a person and visit; the graph is
            then one over time, such as `L[t-1] -> A[t]` (docs/panels.md).
        time: The column that says when.
        ties: Columns of a wide table that are one thing measured again, such as
            `[["L1", "L2", "L3"]]`: they share a unit, and a mechanism where their causes play the
            same part.
        untied: Columns of a long table with a mechanism of its own at each visit, or True for
            all of them.
        varying: Columns of a long table that are measured at every visit although they do not
            vary within a person; others of that kind are taken as measured once.
        allow_uncovered: Whether to train networks although some family is never seen whole.
        progress: Whether to show a progress bar; None shows it in a terminal and in a notebook.
            Or a function that is told of each step: those done, of how many, a note and the stage.

    Attributes:
        panel_: Where the table is long, its `Panel`: visits, events and the graph over time, which
            `graph_` has unrolled; None elsewhere.
        graph_: The `CausalGraph`, with the arrows inside blocks and into auxiliary columns that
            the rows asked for.
        blocks_: For each block its members, in the order of its factorisation, each with the
            members that it was found to depend on.
        model_: The fitted `StructuralModel`, over standardised columns and codes.
        schema_: The kinds and units of the columns.
        kinds_: A DataFrame with the kind of each column, and why it is that.
        settings_: The `Settings` used.
        history_: A DataFrame with one row an epoch, log-densities in the user's units, and which
            epoch was `kept`.
        forms_: The `Form` of each node's mechanism: what sets its mean, its scale and the law of
            its noise. `str(form)` says it in words, such as "network, spline noise".
        comparison_: What curves and networks gain over lines on rows that were left out, in nats
            a row, with its standard error and by node, and how likely the rows are under the line
            of each node; None where networks were not compared.
        rivals_: The forms that nodes might have had: a line in the place of a curve or a curve in
            the place of a line, with the weight that rows which were left out leave it. Intervals
            know of them (docs/intervals.md).
        unlikely_: Values that no law of their column makes likely, by row and column.
        denied_: The independences of the graph that the rows contradict (docs/check.md).
        rough_: The nodes whose mechanism leaves fast waves of the rows, or jumps, that it does not
            follow: `along` which parent, and the `p_value` of the test, which stands for all
            families together. Levels, counts and hidden causes that keep their line `beside` a
            hidden cause although rows ask for more. Answers that lean on these have a note.
        timings_: The seconds that each stage of the fit took.
        loss_starts_: Where a loss depends on the value it hides, a DataFrame of the starts of its
            slope: where the search from each ended, on how many `rows`, how many nats `below` the
            best, and which was `kept`. Empty otherwise.
        loss_evidence_: What the rows said of such losses: who drives them as well (`added`), and
            the `bayes_factor` of the slopes that were `weighed` against none, of which a share is
            `kept` (docs/loss.md).
        n_features_in_: The number of columns of the fitted table, used or not.
        feature_names_in_: Their names, if they are all text; not there after an array.

    Example:
        >>> import numpy as np, pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> t = rng.normal(size=500)
        >>> df = pd.DataFrame({"t": t, "y": 2 * t + rng.normal(size=500)})
        >>> df.loc[:99, "t"] = np.nan
        >>> model = MissCNF("t -> y", preset="linear").fit(df)
        >>> round(model.effect("y", do={"t": 1.0}, versus={"t": 0.0}).estimate, 1)
        2.0
    """

    def __init__(
        self,
        graph: GraphLike | None = None,
        preset: str | Settings = "auto",
        *,
        kinds: Kinds = None,
        unseen: str = "error",
        seed: int = 0,
        device: str = "cpu",
        settings: dict[str, Any] | None = None,
        blocks: Mapping[str, Sequence[str]] | None = None,
        loss: Loss | None = None,
        auxiliary: Sequence[str] | None = None,
        latent: Latent | None = None,
        id: str | None = None,
        time: str | None = None,
        ties: Ties | None = None,
        untied: Sequence[str] | bool | None = None,
        varying: Sequence[str] | None = None,
        allow_uncovered: bool = False,
        progress: Shown = None,
    ) -> None:
        self.graph = graph
        self.preset = preset
        self.kinds = kinds
        self.unseen = unseen
        self.seed = seed
        self.device = device
        self.settings = settings
        self.blocks = blocks
        self.loss = loss
        self.auxiliary = auxiliary
        self.latent = latent
        self.id = id
        self.time = time
        self.ties = ties
        self.untied = untied
        self.varying = varying
        self.allow_uncovered = allow_uncovered
        self.progress = progress

    def fit(
        self,
        df: Table | ArrayLike,
        y: object = None,
        *,
        validation: float | Table | ArrayLike = 0.1,
        checkpoint: str | os.PathLike[str] | None = None,
        memory: str | float | None = None,
        n_jobs: int | None = None,
        cluster: str | None = None,
    ) -> MissCNF:
        """Fits the flow to a table, NaN where a value is unknown.

        Arguments:
            df: A DataFrame, the path of a CSV or Parquet file or of a folder of Parquet files, an
                array, whose columns are called x0, x1, …, or an `IncompleteTable`, which keeps the
                kinds that it was read with.
            y: Ignored; for scikit-learn's sake.
            validation: The share of rows to hold out, or another table of held-out rows. With
                fewer than 20 held-out rows, the preset `auto` stays with lines and curves.
            checkpoint: A directory that lets an interrupted fit go on to the same bits.
            memory: What a fit may take, such as "4GB": a file that would take more is read from
                disk, a batch at a time (docs/many_rows.md). None reads every table into memory.
            n_jobs: Processes that share the passes over such a table; −1 for one a core.
            cluster: The address of a dask scheduler whose workers share them instead.

        Returns:
            The model itself, fitted.

        Example:
            With `df` and `model` of `MissCNF`:

            >>> model = MissCNF("t -> y", preset="linear").fit(df)
            >>> model.summary()["form"].tolist()
            ['line', 'line']
        """
        settings, device = preset_settings(self.preset, self.settings), _device(self.device)
        inputs = InputReader(self, settings).read(df, validation, memory)
        structure = inputs.structure(settings.selection)
        self._check_families(structure, inputs.shown, settings)
        unlikely = unlikely_values(inputs.table, CheckSettings().unlikely)
        for one in unlikely:
            logger.warning("Unlikely value: %s.", one.sentence)
        train, held_out, shift = self._split(inputs, validation)
        with ProgressBar("fitting", show=self.progress) as bar, workers(n_jobs, cluster):
            how: dict[str, Any] = {"seed": self.seed, "device": device, "checkpoint": checkpoint}
            how["watch"], how["say"] = partial(_show_epoch, bar, shift), bar.say
            if inputs.large is None:
                fitted, of_all = fit_model(structure, train, held_out, settings, **how), False
            else:
                rows, sample = inputs.large.rows, (train, held_out)
                how["tell"] = bar.rows
                fitted, of_all = fit_many(structure, rows, sample, settings, **how)
        if inputs.large is not None and of_all:
            shift = inputs.large.log_slope, math.nan
        self.settings_, self.unlikely_ = settings, unlikely
        self._keep_inputs(inputs, of_all=of_all)
        self._keep_fit(fitted, shift)
        self.denied_ = denied_by_rows(*_measured(self.graph_, inputs.table))
        self._warn()
        return self

    def _keep_inputs(self, inputs: Inputs, *, of_all: bool) -> None:
        """Keeps the table, and of how many rows it stands for the fit and the draws are."""
        table, large = inputs.table, inputs.large
        self.panel_, self.schema_, self.kinds_ = (
            inputs.panel,
            table.schema,
            table.schema.describe(),
        )
        self._table, self._digest = replace(table, outside=()), table.digest
        self._drawn_from = None if large is None else len(large)
        self._stands_for = len(large) if large is not None and of_all else None
        self._note_columns(inputs.columns)

    def _keep_fit(self, fitted: Fitted, shift: tuple[float, float]) -> None:
        """Keeps what a fit found; the shift brings log-densities into the user's units."""
        graph = fitted.structure.graph  # rows may have named further drivers of a loss
        self.graph_ = graph
        self.model_ = fitted.model.eval().requires_grad_(requires_grad=False)
        self._cache = Cache(Asked(self.model_))
        self.forms_ = dict(zip(graph.nodes, fitted.forms, strict=True))
        compared = fitted.comparison
        self.comparison_ = None if compared is None else compared.to_dict(fitted.structure)
        self.rough_ = _rough(fitted, self.settings_.selection.rough_p_value)
        blocks = fitted.structure.blocks
        self.rivals_ = {graph.nodes[blocks[b][0]]: rival for b, rival in fitted.rivals.items()}
        self.timings_ = dict(fitted.timings)
        self.loss_starts_ = pd.DataFrame([start.to_dict() for start in fitted.loss_starts])
        self.loss_evidence_ = fitted.loss_evidence
        self.history_ = _history(fitted.history, shift)

    def _warn(self) -> None:
        """Says what answers should be read with care for."""
        for name, said in self.rough_.items():
            if "beside" in said:
                logger.warning("%s", rough_sentence(name, said))
        for doubt in self.loss_["doubt"] if self.graph_.own_losses else ():
            if doubt:
                logger.warning("%s", doubt)

    def _check_families(self, structure: Structure, observed: Tensor, settings: Settings) -> None:
        """Warns of families that no row shows whole; refuses to train networks on them."""
        graph = structure.graph
        bare = set(map(graph.index, uncovered_families(graph, observed)))
        uncovered = [
            graph.nodes[nodes[0]]
            for nodes in structure.blocks
            if bare.issuperset(nodes)  # what one of tied nodes shows serves all of them
            and nodes[0] not in graph.indicators
            and graph.nodes[nodes[0]] not in graph.auxiliary
        ]
        around = {graph.nodes[i] for i in _around_hidden(graph)}  # which nothing shows whole
        uncovered = [name for name in uncovered if name not in around]
        sentence = warning_sentence(graph, uncovered) if uncovered else ""
        if uncovered and settings.train and not self.allow_uncovered:
            raise InputError(
                f"{sentence.rstrip('.')}; use preset='linear', where pairs of columns may be "
                f"enough, or MissCNF(..., allow_uncovered=True)."
            )
        if uncovered:
            logger.warning("%s", sentence[0].upper() + sentence[1:])

    def _split(
        self, inputs: Inputs, validation: float | Table | ArrayLike
    ) -> tuple[RowSource, RowSource | None, tuple[float, float]]:
        """Returns rows to learn from and held-out ones, and what turns nats into users' units."""
        table = inputs.table
        rows, slopes = MemoryRows(table.values, table.observed), table.log_slope()
        if not isinstance(validation, int | float):
            given = name_columns(validation)
            if inputs.panel is not None:
                given = inputs.panel.wide(read_table(given))
            other = IncompleteTable.read(given, table.nodes, table.schema, unseen=self.unseen)
            shift = float(slopes.mean()), float(other.log_slope().mean())
            return rows, MemoryRows(other.values, other.observed), shift
        if not 0.0 <= validation < 1.0:
            raise InputError(f"validation is a share in [0, 1) or a table; got {validation}.")
        count = int(validation * len(table))
        if count == 0:
            return rows, None, (float(slopes.mean()), math.nan)
        order = torch.randperm(len(table), generator=derive_generator(self.seed, "split"))
        train, held_out = order[count:].sort().values, order[:count].sort().values
        shift = float(slopes[train].mean()), float(slopes[held_out].mean())
        return SelectedRows(rows, train), SelectedRows(rows, held_out), shift

    def _repr_html_inner(self) -> str:
        """Returns what a notebook shows: a fitted model's card, or scikit-learn's diagram."""
        if not hasattr(self, "model_"):
            return super()._repr_html_inner()
        return card(repr(self), facts(self), {"": self.kinds_})

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:  # not with sklearn.set_config(display="text")
            bundle["text/html"] = self._repr_html_inner()
        return bundle


def _measured(graph: CausalGraph, table: IncompleteTable) -> tuple[CausalGraph, IncompleteTable]:
    """Leaves out what is known beforehand, as the time of a visit is: no test speaks of it."""
    known = {table.nodes[j] for j in table.schema.fixed}
    if not known:
        return graph, table
    nodes = [name for name in graph.nodes if name not in known]
    rest = CausalGraph.from_edges([edge for edge in graph.edges if edge[0] not in known], nodes)
    return rest, table.in_order(nodes)


def _around_hidden(graph: CausalGraph) -> list[int]:
    """Returns hidden causes and their children."""
    hidden = graph.latent_nodes
    return [i for i, family in enumerate(graph.families) if hidden.intersection(family)]


def _show_epoch(
    bar: ProgressBar, shift: tuple[float, float], record: EpochRecord, epochs: int
) -> None:
    """Shows an epoch of a fit; the shift brings log-densities into the user's units."""
    names = ("train", record.train), ("held out", record.validation)
    found = [
        f"{words} {log_density + nats:.4f}"
        for (words, log_density), nats in zip(names, shift, strict=True)
        if log_density is not None
    ]
    note = f"log-density a row: {', '.join(found)}" if found else ""
    bar(record.epoch, epochs, note, record.stage or "fitting")


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"the device {name!r} cannot be used here; try device='cpu'.") from error
    return device


def _history(records: list[EpochRecord], shift: tuple[float, float]) -> pd.DataFrame:
    frame = pd.DataFrame([record.to_dict() for record in records])
    for name, nats in zip(("train", "validation"), shift, strict=True):
        if name in frame:
            frame[name] += nats
    return frame


def _where(structure: Structure, node: int, rough: Rough) -> dict[str, str]:
    """Returns along which parent a node is rough, or beside which hidden cause it keeps a line."""
    graph = structure.graph
    if rough.parent is not None:
        return {"along": graph.read_by(node)[rough.parent]}
    hidden = graph.latent_nodes.intersection(graph.families[node])
    return {"beside": graph.nodes[min(hidden)]}


def _rough(fitted: Fitted, level: float) -> dict[str, dict[str, Any]]:
    """Returns the nodes that fast waves were found in, and along which parent."""
    structure, found = fitted.structure, fitted.rough
    nodes = structure.graph.nodes
    most = level / max(len(found), 1)
    return {
        nodes[node]: {
            **_where(structure, node, rough),
            "p_value": min(1.0, rough.p_value * len(found)),
        }
        for block, rough in found.items()
        if rough.p_value < most
        for node in structure.blocks[block]
    }
