r"""A transformer for pipelines: every hole filled from p(what is hidden | what the row shows).

    draw="mean"      x̂_h = E[x_h | x_o], from posterior draws; the most probable level of a
                     discrete column, the nearest whole number of a count
    draw="sample"    one draw x̂_h ~ p(x_h | x_o), which keeps the spread of the column

Observed cells come back bit for bit. A mean is the best guess of one cell and makes the column
too narrow; for standard errors use `MissCNF.impute(df, draws, proper=True)` and `misscnf.pool`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from misscnf.data.cells import listed
from misscnf.data.codecs import Column, Count, Levels, refuse_constant
from misscnf.data.column_names import ArrayLike, column_names, name_columns
from misscnf.data.kinds import Kinds
from misscnf.data.table import IncompleteTable
from misscnf.errors import InputError
from misscnf.estimators.inputs import ORDERED, ordered_graph
from misscnf.estimators.misscnf import HoleyMixin, MissCNF
from misscnf.fitting.settings import Settings
from misscnf.graph import CausalGraph, GraphLike
from misscnf.queries.asking import check_count

__all__ = ["MissCNFImputer"]


class MissCNFImputer(HoleyMixin, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fills the holes of a table, inside or outside a scikit-learn pipeline.

    A table comes back as it went in: a DataFrame with its index, columns and dtypes, an array as
    an array; `set_output(transform="pandas")` makes DataFrames of both. Columns keep their order,
    and none is dropped. A column with one and the same value in the fitted table is filled with
    that value. Columns that a graph does not name are passed through, and refused if they have
    holes.

    Arguments:
        graph: "ordered", where each column depends on all before it, or a causal graph: where
            that is known, fewer arrows make sharper imputations. Neither needs a complete row.
        preset: "linear", "auto", "paper" or `Settings`. The default is linear, since a pipeline
            is fitted again in every fold: exact maximum likelihood, in a fraction of a second
            where all columns are numbers (kinds mixed with levels and counts take longer), where
            "auto" trains networks and keeps them if held-out rows say so.
        kinds: What kind columns are; inferred by default, as `MissCNF` does.
        draw: "mean", the posterior mean or most probable level, or "sample", one posterior draw.
        draws: Posterior draws behind a mean or a most probable level.
        seed: Where randomness starts; the same table gets the same imputations.

    Attributes:
        model_: The fitted `MissCNF`; None where every column is constant.
        constants_: The value of each constant column.
        n_features_in_: The number of columns.
        feature_names_in_: Their names, if they are all text; not there after an array.

    Example:
        >>> import numpy as np
        >>> x = np.arange(20.0)
        >>> rows = np.column_stack([x, 2 * x + np.sin(x)])
        >>> rows[3, 1] = np.nan
        >>> float(MissCNFImputer().fit_transform(rows)[3, 1].round(0))
        6.0
    """

    _cells_at_once = 2_000_000
    """Drawn cells that are held in memory at a time."""

    def __init__(
        self,
        graph: GraphLike = ORDERED,
        preset: str | Settings = "linear",
        *,
        kinds: Kinds = None,
        draw: str = "mean",
        draws: int = 100,
        seed: int = 0,
    ) -> None:
        self.graph = graph
        self.preset = preset
        self.kinds = kinds
        self.draw = draw
        self.draws = draws
        self.seed = seed

    def fit(self, X: ArrayLike, y: object = None) -> MissCNFImputer:
        """Fits the model to a DataFrame or an array, NaN where a value is unknown.

        Arguments:
            X: The table.
            y: Ignored.

        Returns:
            The imputer itself, fitted.

        Example:
            >>> df = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [2.0, np.nan, 6.1, 8.0]})
            >>> MissCNFImputer(preset="linear").fit(df).n_features_in_
            2
        """
        self._check_choices()
        frame = self._read(X, first=True)
        self._fitted_to_frame = isinstance(X, pd.DataFrame)
        self.constants_ = _constants(frame)
        varying = frame.drop(columns=list(self.constants_))
        graph = self._graph(list(varying.columns))
        self.model_ = None
        if graph is not None:
            _refuse_holes_outside(varying, graph)
            self.model_ = MissCNF(
                graph,
                self.preset,
                kinds=_kinds_of(self.kinds, varying),
                unseen="missing",  # a level of a later fold says nothing, and is left as it is
                seed=self.seed,
                progress=False,
            ).fit(varying)
        return self

    def transform(self, X: ArrayLike) -> Any:  # noqa: ANN401 - as it went in
        """Returns the rows without holes.

        Arguments:
            X: Rows with the columns of the fit.

        Example:
            >>> df = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [2.0, np.nan, 6.1, 8.0]})
            >>> filled = MissCNFImputer(preset="linear").fit(df).transform(df)
            >>> filled["b"].round().tolist()
            [2.0, 4.0, 6.0, 8.0]
        """
        check_is_fitted(self, "constants_")
        frame = self._read(X, first=False)
        filled = frame.copy()
        for name, value in self.constants_.items():
            if filled[name].isna().any():
                filled[name] = filled[name].fillna(value)
        if self.model_ is not None:
            graph = self.model_.graph_
            _refuse_holes_outside(filled, graph)
            nodes = filled[list(graph.nodes)]
            rows = np.flatnonzero(nodes.isna().to_numpy().any(axis=1))
            if len(rows):
                completed = self._complete(self.model_, nodes.iloc[rows])
                for name in graph.nodes:
                    filled[name] = _fill(filled[name], rows, completed[name])
        if not isinstance(X, pd.DataFrame):
            return filled.to_numpy()
        # Names that are numbers come back too; after an array the names are x0, x1, ….
        return filled.set_axis(X.columns, axis=1) if self._fitted_to_frame else filled

    def _check_choices(self) -> None:
        if self.draw not in ("mean", "sample"):
            raise InputError(f"draw is 'mean' or 'sample'; got {self.draw!r}.")
        check_count("draws", self.draws)

    def _graph(self, varying: Sequence[str]) -> CausalGraph | None:
        """Returns the graph over what varies; what does not is no cause of what does."""
        if isinstance(self.graph, str) and self.graph == ORDERED:
            return ordered_graph(varying) if varying else None
        graph = CausalGraph.read(self.graph)
        nodes = [name for name in graph.nodes if name not in self.constants_]
        edges = [edge for edge in graph.edges if self.constants_.keys().isdisjoint(edge)]
        members = {
            name: [member for member in of if member not in self.constants_]
            for name, of in graph.blocks.items()
        }
        blocks = {name: of for name, of in members.items() if of}
        extra = [name for name in graph.auxiliary if name not in self.constants_]
        return CausalGraph.from_edges(edges, nodes, blocks, extra) if nodes else None

    def _read(self, X: ArrayLike, *, first: bool) -> pd.DataFrame:
        """Returns the table with names, its columns noted or compared as scikit-learn does."""
        frame = name_columns(X)
        if not isinstance(frame, pd.DataFrame):
            raise InputError(
                f"the imputer takes a DataFrame or an array, not the path {str(X)!r}; read it "
                f"with pandas first."
            )
        if not frame.columns.is_unique:
            again = frame.columns[frame.columns.duplicated()]
            raise InputError(f"the table has several columns named {again[0]!r}; rename them.")
        _note_features(self, frame if isinstance(X, pd.DataFrame) else frame.to_numpy(), first)
        if len(frame) == 0:
            raise InputError("the table has no rows; at least one is needed.")
        names = getattr(self, "feature_names_in_", column_names(frame.shape[1]))
        return frame.set_axis(list(names), axis=1)

    def _complete(self, model: MissCNF, rows: pd.DataFrame) -> pd.DataFrame:
        """Returns rows with holes, completed."""
        if self.draw == "sample":
            return model.sample(given=rows, seed=self.seed)
        count = max(1, self._cells_at_once // (self.draws * rows.shape[1]))
        # Each part has noise of its own, so that no two rows have errors in common.
        parts = [
            _expected(model, rows.iloc[start : start + count], self.draws, self.seed + start)
            for start in range(0, len(rows), count)
        ]
        return pd.concat(parts)


def _note_features(imputer: MissCNFImputer, X: Any, first: bool) -> None:  # noqa: ANN401, FBT001
    """Keeps or compares number and names of the columns, in scikit-learn's own words."""
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # before 1.6
        imputer._check_feature_names(X, reset=first)
        imputer._check_n_features(X, reset=first)
    else:
        validate_data(imputer, X, reset=first, skip_check_array=True)


def _constants(frame: pd.DataFrame) -> dict[str, Any]:
    """Returns the value of each column that has only one."""
    constants = {}
    for name in frame.columns:
        seen = frame[name].dropna()
        if not len(seen):
            raise InputError(
                f"column {name!r} has no value at all, so nothing says how to fill it; drop it "
                f"from the table."
            )
        if _is_constant(seen, name):
            constants[name] = seen.iloc[0]
    return constants


def _is_constant(seen: pd.Series, name: str) -> bool:
    if not pd.api.types.is_float_dtype(seen):
        return bool((seen == seen.iloc[0]).all())
    try:
        refuse_constant(name, seen.to_numpy(dtype=np.float64))  # up to rounding
    except InputError:
        return True
    return False


def _refuse_holes_outside(frame: pd.DataFrame, graph: CausalGraph) -> None:
    holed = [name for name in frame if name not in graph.nodes and frame[name].isna().any()]
    if holed:
        raise InputError(
            f"the graph does not name {listed(holed)}, and there are holes there that nothing "
            f"says how to fill; add them to the graph, or drop them from the table."
        )


def _kinds_of(kinds: Kinds, varying: pd.DataFrame) -> Kinds:
    """Returns the kinds that were asked for, of the columns that are modelled."""
    if not isinstance(kinds, Mapping):
        return kinds
    return {name: kind for name, kind in kinds.items() if name in varying.columns}


def _expected(model: MissCNF, rows: pd.DataFrame, draws: int, seed: int) -> pd.DataFrame:
    """Returns rows completed by the mean of each cell's draws, or the most frequent of them."""
    rows = rows.reset_index(drop=True)
    drawn = model.sample(draws, given=rows, seed=seed)
    columns = model.schema_.columns
    raw = [_summary(column, column.read(drawn[column.name]), draws) for column in columns]
    table = IncompleteTable.read(rows, model.graph_.nodes, model.schema_, unseen=model.unseen)
    return table.complete(torch.from_numpy(model.schema_.encode(np.column_stack(raw))))


def _summary(column: Column, drawn: np.ndarray, draws: int) -> np.ndarray:
    """Returns one number for the draws of each row, which come draw by draw, (N,)."""
    numbers = drawn.reshape(draws, -1)
    if isinstance(column, Levels):
        levels = np.arange(len(column.levels))
        return (numbers[:, :, None] == levels).sum(axis=0).argmax(axis=1).astype(np.float64)
    mean = numbers.mean(axis=0)
    return np.rint(mean) if isinstance(column, Count) else mean


def _fill(cells: pd.Series, rows: np.ndarray, completed: pd.Series) -> pd.Series:
    """Returns a column with its holes filled and everything else as it was."""
    holes = cells.isna().to_numpy()
    if not holes.any():
        return cells
    values = completed.array[holes[rows]]
    if completed.dtype == cells.dtype:
        array = cells.array.copy()
        array[holes] = values
        return pd.Series(array, cells.index, name=cells.name)
    mixed = cells.to_numpy(dtype=object, copy=True)  # without holes, any dtype takes it
    mixed[holes] = values
    return pd.Series(mixed, cells.index, name=cells.name).infer_objects()
