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

import itertools
import logging
import math
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from misscnf.data.column_names import ArrayLike, column_names, name_columns, refuse_width
from misscnf.data.kinds import Kinds
from misscnf.data.rows import MemoryRows, RowSource, SelectedRows
from misscnf.data.table import IncompleteTable, Schema, Table, holed_columns, read_table
from misscnf.display.notebook import card
from misscnf.display.progress import ProgressBar
from misscnf.draws import derive_generator
from misscnf.errors import InputError, ModelFileError
from misscnf.fitting.fit import Fitted, fit_model
from misscnf.fitting.replicates import Replicates
from misscnf.fitting.rivals import SolvedRival, Without
from misscnf.fitting.select.forms import Form
from misscnf.fitting.select.means import Rival
from misscnf.fitting.select.parents import arrange_blocks, whole_members
from misscnf.fitting.settings import Settings, preset_settings
from misscnf.fitting.train.loop import EpochRecord
from misscnf.graph import CausalGraph, GraphLike
from misscnf.graph.indicators import Loss
from misscnf.graph.latents import Latent
from misscnf.identification import (
    Unlikely,
    denied_by_rows,
    uncovered_families,
    unlikely_values,
    warning_sentence,
)
from misscnf.identification.independences import Contradiction
from misscnf.identification.projection import shown_graph
from misscnf.identification.settings import CheckSettings
from misscnf.mechanisms import Shape
from misscnf.model import StructuralModel, Structure
from misscnf.model.saved_replicates import drop_replicates, load_replicates, save_replicates
from misscnf.model.storage import fingerprint, load_model, refusing, save_model
from misscnf.options import from_dict
from misscnf.queries.asking import Asked, Cache
from misscnf.queries.simulate import QueryMixin

__all__ = ["MissCNF", "ORDERED", "ordered_graph"]

ORDERED = "ordered"
"""The graph in which each column depends on all before it, in the order of the table."""

logger = logging.getLogger("misscnf")


class HoleyMixin:
    """Tells scikit-learn that holes are welcome."""

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 - scikit-learn's Tags, new in 1.6
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        return tags

    def _more_tags(self) -> dict[str, Any]:
        return {"allow_nan": True, "preserves_dtype": [np.float64]}  # scikit-learn before 1.6


class MissCNF(HoleyMixin, QueryMixin, BaseEstimator):
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
        allow_uncovered: Whether to train networks although some family is never seen whole.
        progress: Whether to show a progress bar; None shows it in a terminal.

    Attributes:
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
            families together. Answers that lean on these have a note.
        timings_: The seconds that each stage of the fit took.
        loss_starts_: Where a loss depends on the value it hides, a DataFrame of the starts of its
            slope: where the search from each ended, on how many `rows`, how many nats `below` the
            best, and which was `kept`. Empty otherwise.
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

    _names: tuple[str, ...] | None = None

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
        allow_uncovered: bool = False,
        progress: bool | None = None,
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
        self.allow_uncovered = allow_uncovered
        self.progress = progress

    def fit(
        self,
        df: Table | ArrayLike,
        y: object = None,
        *,
        validation: float | Table | ArrayLike = 0.1,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> MissCNF:
        """Fits the flow to a table, NaN where a value is unknown.

        Arguments:
            df: A DataFrame, the path of a CSV or Parquet file, an array, whose columns are called
                x0, x1, …, or an `IncompleteTable`, which keeps the kinds that it was read with.
            y: Ignored; for scikit-learn's sake.
            validation: The share of rows to hold out, or another table of held-out rows. With
                fewer than 20 held-out rows, the preset `auto` stays with lines and curves.
            checkpoint: A directory that lets an interrupted fit go on to the same bits.
        """
        source = df if isinstance(df, IncompleteTable) else read_table(name_columns(df))
        graph = self._read_graph(source.columns).with_auxiliary(self.auxiliary, source.columns)
        graph = graph.with_loss(self.loss, holed_columns(source))
        settings = preset_settings(self.preset, self.settings)
        _check_hidden(graph, settings)
        device = _device(self.device)
        if self.unseen not in ("error", "missing"):
            raise InputError(f"unseen is 'error' or 'missing'; got {self.unseen!r}.")
        if len(source) < 2:
            raise InputError(
                "the table has one row (n_samples=1), where nothing varies; give at least two."
            )
        rules, latent = settings.kinds, graph.latent
        table = IncompleteTable.read(
            source, graph.nodes, kinds=self.kinds, rules=rules, latent=latent
        )
        if table is not df and self.progress is not False:
            kinds = table.schema.describe().to_string(index=False)
            logger.info("The kinds of the columns:\n%s", kinds)
        graph = _arranged(graph, table, settings)
        table = table.in_order(graph.nodes)
        richer = settings.selection.whole_members
        lines = [] if richer else whole_members(graph, table.observed)
        lines += _lines_of_loss(graph, table.observed)
        lines += map(graph.index, graph.auxiliary)
        lines += _around_hidden(graph)
        self._check_families(graph, table, settings)
        unlikely = unlikely_values(table, CheckSettings().unlikely)
        for one in unlikely:
            logger.warning("Unlikely value: %s.", one.sentence)
        train, held_out, shift = self._split(table, validation)
        with ProgressBar("fitting", show=self.progress) as bar:
            fitted = fit_model(
                Structure.of(graph, table.schema.domains, lines=lines),
                train,
                held_out,
                settings,
                seed=self.seed,
                device=device,
                checkpoint=checkpoint,
                watch=partial(_show_epoch, bar, shift),
            )
        self.graph_, self.schema_, self.settings_ = graph, table.schema, settings
        self.kinds_, self.unlikely_ = table.schema.describe(), unlikely
        self.model_ = fitted.model.eval().requires_grad_(requires_grad=False)
        self.forms_ = dict(zip(graph.nodes, fitted.forms, strict=True))
        compared = fitted.comparison
        self.comparison_ = None if compared is None else compared.to_dict(fitted.structure)
        self.rough_ = _rough(fitted, self.settings_.selection.rough_p_value)
        blocks = fitted.structure.blocks
        self.rivals_ = {graph.nodes[blocks[b][0]]: rival for b, rival in fitted.rivals.items()}
        self.timings_ = dict(fitted.timings)
        self.loss_starts_ = pd.DataFrame([start.to_dict() for start in fitted.loss_starts])
        self.denied_ = denied_by_rows(graph, table)
        self._table, self._cache = replace(table, outside=()), Cache(Asked(self.model_))
        self._digest = table.digest
        self.history_ = _history(fitted.history, shift)
        named = isinstance(df, pd.DataFrame | str | os.PathLike | IncompleteTable)
        self._note_columns(source.columns if named else source.shape[1])
        return self

    @property
    def chosen_(self) -> Literal["linear", "curve", "network"]:
        """The richest form: a network or a spline somewhere, else a curve, else lines alone.

        Lines with interactions count as lines here; `interactions_` names them.
        """
        found = {form.richness for form in self.forms_.values()}
        return "network" if "network" in found else "curve" if "curve" in found else "linear"

    @property
    def networks_(self) -> tuple[str, ...]:
        """The nodes whose mean or logits have a network."""
        return self._with_forms(lambda form: form.mean)

    @property
    def curves_(self) -> tuple[str, ...]:
        """The nodes whose mean is a curve."""
        return self._with_forms(lambda form: form.curve is not None and not form.interactions)

    @property
    def interactions_(self) -> tuple[str, ...]:
        """The nodes whose mean or logits are a line with products of parents beside it."""
        return self._with_forms(lambda form: form.interactions)

    def _with_forms(self, wanted: Callable[[Form], bool]) -> tuple[str, ...]:
        return tuple(name for name, form in self.forms_.items() if wanted(form))

    @property
    def blocks_(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """For each block its members in order, with the members that each depends on."""
        graph = self.graph_
        return {
            block: {
                name: tuple(p for p in graph.parents_of(name) if p in members)
                for name in sorted(members, key=graph.index)
            }
            for block, members in graph.blocks.items()
        }

    @property
    def rungs_(self) -> dict[str, str]:
        """The old name of `forms_`, in words."""
        warnings.warn(
            "rungs_ is called forms_ now, and will be gone in the next release.",
            FutureWarning,
            stacklevel=2,
        )
        return {name: str(form) for name, form in self.forms_.items()}

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the fitted columns; after an array there are none, as scikit-learn asks."""
        if self._names is None:
            raise AttributeError("the fitted table has no names of columns.")
        return np.asarray(self._names, dtype=object)

    def _read_graph(self, names: Sequence[Any] | pd.Index) -> CausalGraph:
        if self.graph is None:
            raise InputError("a causal graph is needed: MissCNF(graph), such as 'a -> b; b -> c'.")
        if isinstance(self.graph, str) and self.graph == ORDERED:
            return ordered_graph(names)
        return CausalGraph.read(self.graph, self.blocks, self.latent)

    def _note_columns(self, columns: Iterable[Any] | int) -> None:
        """Keeps the names of the fitted columns if all are text, and else only their number."""
        if isinstance(columns, int):
            self.n_features_in_, self._names = columns, None
            return
        names = tuple(columns)
        self.n_features_in_ = len(names)
        self._names = names if all(isinstance(name, str) for name in names) else None

    def _named(self, df: Table | ArrayLike) -> Table:
        """Returns new rows with the fitted table's names where they have none of them."""
        self._graph()  # refuses a model that is not fitted
        if isinstance(df, IncompleteTable):
            return df
        names = self._names
        if names is None:
            names = tuple(column_names(self.n_features_in_))
            if isinstance(df, pd.DataFrame) and not set(names) & set(df.columns):
                # Fitted to an array and asked with a frame: scikit-learn goes by position.
                refuse_width(df.shape[1], len(names), type(self).__name__)
                return df.set_axis(list(names), axis=1)
        return name_columns(df, list(names), type(self).__name__)

    def _check_families(
        self, graph: CausalGraph, table: IncompleteTable, settings: Settings
    ) -> None:
        """Warns of families that no row shows whole; refuses to train networks on them."""
        uncovered = [
            name
            for name in uncovered_families(graph, table.observed)
            if graph.index(name) not in graph.indicators and name not in graph.auxiliary
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
        self, table: IncompleteTable, validation: float | Table | ArrayLike
    ) -> tuple[RowSource, RowSource | None, tuple[float, float]]:
        """Returns rows to learn from and held-out ones, and what turns nats into users' units."""
        rows, slopes = MemoryRows(table.values, table.observed), table.log_slope()
        if not isinstance(validation, int | float):
            other = IncompleteTable.read(
                name_columns(validation), table.nodes, table.schema, unseen=self.unseen
            )
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

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the fitted model to a folder, as safetensors and JSON.

        Replicates of the fit that intervals have made are saved beside it, so that a further
        interval of the loaded model costs a sweep, and asks for no table.
        """
        self._graph()  # refuses a model that is not fitted
        history = self.history_.astype(object)
        about = {
            "schema": self.schema_.to_dict(),
            "settings": self.settings_.to_dict(),
            "seed": self.seed,
            "unseen": self.unseen,
            "table": self._digest,
            "comparison": self.comparison_,
            "rough": self.rough_,
            "rivals": {name: asdict(rival) for name, rival in self.rivals_.items()},
            "unlikely": [asdict(one) for one in self.unlikely_],
            "timings": self.timings_,
            "loss starts": self.loss_starts_.to_dict("records"),
            "denied": [asdict(line) for line in self.denied_],
            "forms": {name: form.to_dict() for name, form in self.forms_.items()},
            "columns": self.n_features_in_ if self._names is None else list(self._names),
            # JSON has no NaN, which an epoch has for what it did not measure.
            "history": history.where(history.notna(), None).to_dict("list"),
        }
        save_model(folder, self.model_, about)
        if self._cache.replicates:
            self._cache.unsaved = self._cache.unsaved or next(reversed(self._cache.replicates))
            self._save_replicates(folder)
        else:
            drop_replicates(folder)

    def _save_replicates(self, folder: str | os.PathLike[str]) -> tuple[int, int] | None:
        """Writes replicates that are not on disk; returns how many, and the bytes they take."""
        key = self._cache.unsaved
        if key is None:
            return None
        found, _ = self._cache.replicates[key]
        about: dict[str, Any] = {"fit": self._fingerprint(), "key": key, "doubt": found.doubt}
        about["rivals"] = [rival.to_dict() for rival in found.rivals]
        about["without"] = [[one.cells, one.column] for one in found.without]
        size = save_replicates(folder, self.model_, found.models, about, found.tensors())
        self._cache.unsaved = None
        return len(found), size

    def _fingerprint(self) -> str:
        """By which replicates know their fit: what was fitted, and how it was replicated."""
        return fingerprint(self.model_, {"settings": self.settings_.to_dict(), "seed": self.seed})

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> MissCNF:
        """Reads a model that `save` wrote; an altered, foreign or older file is refused."""
        model, about = load_model(folder)
        if not isinstance(about.get("forms"), dict) or "columns" not in about:
            raise ModelFileError(
                f"{str(folder)!r} was saved by an earlier misscnf; fit the model again."
            )
        with refusing(folder):
            self = cls._restored(model, about)
        saved = load_replicates(folder, self.model_, self._fingerprint())
        if saved is not None:
            models, beside, said = saved
            structure = Structure.of(self.graph_, self.schema_.domains, self.model_.keys)
            line = structure.build(Shape(hidden=())).double()
            rivals = [SolvedRival.from_dict(entry, self.model_) for entry in said["rivals"]]
            without = [Without(cells, name, self.model_) for cells, name in said["without"]]
            given = (line, self.settings_.replicates, said["doubt"], rivals, without)
            self._keep(said["key"], Replicates.restored(models, beside, *given))
        return self

    @classmethod
    def _restored(cls, model: StructuralModel, about: Mapping[str, Any]) -> MissCNF:
        settings = Settings.from_dict(about["settings"])
        schema = Schema.from_dict(about["schema"])
        Structure.of(model.graph, schema.domains, model.keys).check(model)
        if schema.nodes != model.graph.nodes or [*about["forms"]] != [*schema.nodes]:
            raise ValueError("its columns are not the nodes of its graph")
        self = cls(
            graph=model.graph,
            preset=settings,
            kinds=schema.kinds,
            unseen=about.get("unseen", "error"),
            seed=about["seed"],
            blocks=model.graph.blocks or None,
            auxiliary=list(model.graph.auxiliary) or None,
            latent=model.graph.latent or None,
        )
        self.graph_, self.settings_ = model.graph, settings
        self.schema_, self.kinds_ = schema, schema.describe()
        self.model_ = model.eval().requires_grad_(requires_grad=False)
        self._table, self._cache = None, Cache(Asked(self.model_))
        self._digest = about.get("table")
        self.forms_ = {name: Form.from_dict(entry) for name, entry in about["forms"].items()}
        self.comparison_, self.timings_ = about["comparison"], about.get("timings", {})
        self.denied_ = tuple(from_dict(Contradiction, line) for line in about.get("denied", ()))
        self.rough_, named = about.get("rough", {}), about.get("rivals", {})
        self.rivals_ = {name: from_dict(Rival, entry) for name, entry in named.items()}
        self.unlikely_ = tuple(from_dict(Unlikely, one) for one in about.get("unlikely", ()))
        self.loss_starts_ = pd.DataFrame(about.get("loss starts", []))
        self.history_ = pd.DataFrame(about["history"])
        self._note_columns(about["columns"])
        card(repr(self), _facts(self), {"": self.kinds_})  # what it says of itself can be shown
        return self

    def __str__(self) -> str:
        """What print shows: a fitted model's card; scikit-learn's text before."""
        if not hasattr(self, "model_"):
            return repr(self)
        graph, forms = self.graph_, Counter(str(form) for form in self.forms_.values())
        hidden = f" and {len(graph.latent)} hidden causes" if graph.latent else ""
        count = len(graph) - len(graph.latent)
        head = f"MissCNF, fitted: {count} columns{hidden}, {len(graph.edges)} arrows"
        facts = {name: value for name, value in _facts(self).items() if name != "graph"}
        facts["forms"] = ", ".join(f"{count} {form}" for form, count in forms.most_common())
        wide = max(map(len, facts))
        lines = [f"  {name:{wide}}  {value}" for name, value in facts.items()]
        kinds = self.kinds_[["column", "kind", "levels", "holes"]].to_string(index=False)
        more = "summary() has the coefficients, effect(…) the answers"
        return "\n".join([head, *lines, *(f"  {line}" for line in kinds.splitlines()), more])

    def _repr_html_inner(self) -> str:
        """Returns what a notebook shows: a fitted model's card, or scikit-learn's diagram."""
        if not hasattr(self, "model_"):
            return super()._repr_html_inner()
        return card(repr(self), _facts(self), {"": self.kinds_})

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:  # not with sklearn.set_config(display="text")
            bundle["text/html"] = self._repr_html_inner()
        return bundle


def _around_hidden(graph: CausalGraph) -> list[int]:
    """Returns hidden causes and their children, which stay lines."""
    hidden = graph.latent_nodes
    return [i for i, family in enumerate(graph.families) if hidden.intersection(family)]


def _check_hidden(graph: CausalGraph, settings: Settings) -> None:
    """Refuses networks beside hidden causes that nothing was compared with."""
    if (
        graph.latent
        and settings.train
        and not (settings.selection.compare and settings.linear_start)
    ):
        raise InputError(
            f"the preset {settings.preset!r} gives every node a network, and beside hidden causes "
            f"({', '.join(graph.latent)}) rows cannot tell how these bend; use preset='auto' or "
            f"'linear', where hidden causes act by lines."
        )


def _arranged(graph: CausalGraph, table: IncompleteTable, settings: Settings) -> CausalGraph:
    """Returns the graph with the arrows inside blocks, and into auxiliary columns."""
    shown = shown_graph(graph)
    part = table.in_order(shown.nodes)
    rows = (part.values, part.observed, part.schema.domains)
    arranged = arrange_blocks(shown, *rows, settings.selection)
    if not graph.latent:
        return arranged
    return graph.arranged(arranged.edges_inside, arranged.nodes)


def _lines_of_loss(graph: CausalGraph, observed: Tensor) -> list[int]:
    """Returns the indicators that stay logistic lines.

    A flexible law of a loss that reads what it hides follows the shape of the values instead.
    """
    shown = observed.all(0)
    return [i for i in graph.indicators if not bool(shown[list(graph.parents[i])].all())]


def ordered_graph(names: Sequence[str] | pd.Index) -> CausalGraph:
    """Returns the graph in which each column depends on all before it."""
    return CausalGraph.from_edges(itertools.combinations(names, 2), names)


def _facts(model: MissCNF) -> dict[str, object]:
    """Returns what is to be known of a fitted model at a glance."""
    facts: dict[str, object] = {"graph": repr(model.graph_)}
    if model.graph_.auxiliary:
        facts["auxiliary"] = ", ".join(model.graph_.auxiliary)
    if model._table is not None:
        columns = [j for j in range(len(model.graph_)) if j not in model.graph_.latent_nodes]
        shown = float(model._table.observed[:, columns].double().mean())
        facts["rows"] = f"{len(model._table)}, {100 * (1 - shown):.1f} % of their cells missing"
    facts["mechanisms"] = f"{model.chosen_} (preset {model.settings_.preset!r})"
    if model.comparison_ is not None:
        more, error = model.comparison_["elpd_difference"], model.comparison_["standard_error"]
        facts["elpd difference from lines"] = f"{more:.4f} ± {error:.4f} nats a row"
    return facts


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


def _rough(fitted: Fitted, level: float) -> dict[str, dict[str, Any]]:
    """Returns the nodes that fast waves were found in, and along which parent."""
    structure, found = fitted.structure, fitted.rough
    nodes = structure.graph.nodes
    most = level / max(len(found), 1)
    return {
        nodes[node]: {
            "along": nodes[structure.graph.parents[node][rough.parent]],
            "p_value": min(1.0, rough.p_value * len(found)),
        }
        for block, rough in found.items()
        if rough.p_value < most
        for node in structure.blocks[block]
    }
