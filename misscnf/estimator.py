r"""The front door: a table with holes and a graph in, answers out.

    model = MissCNF("age -> dose; age -> outcome; dose -> outcome").fit(df)
    model.effect("outcome", do={"dose": 1.0}, versus={"dose": 0.0})

DataFrames go in and come out, in the user's units. The model is fitted by maximising the likelihood
of what each row shows: no row is dropped and nothing is imputed first. Every answer then comes from
that one model.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from torch import Tensor

from misscnf.draws import derive_generator
from misscnf.effects import Effect, contrast
from misscnf.elimination import Plan
from misscnf.errors import InputError
from misscnf.fitting import Settings, fit_model, preset_settings
from misscnf.graph import CausalGraph, GraphLike
from misscnf.interventions import Do, held_values, read_clamps
from misscnf.likelihood import RowLikelihood, observed_log_prob
from misscnf.posterior import draw_completions
from misscnf.progress import FitProgress
from misscnf.storage import load_model, save_model
from misscnf.structural import StructuralModel
from misscnf.table import IncompleteTable, Schema

__all__ = ["MissCNF"]

Table = pd.DataFrame | str | os.PathLike[str]


class MissCNF(BaseEstimator):
    """A causal normalizing flow, fitted to an incomplete table.

    Arguments:
        graph: The causal graph, in any form that `CausalGraph.read` takes.
        preset: "auto", "linear" or "paper", or `Settings`.
        seed: Where randomness starts; the same seed on one machine gives the same bits.
        device: Where networks are trained, such as "cpu" or "cuda".
        settings: Changes to the preset, such as `{"epochs": 20}`.
        progress: Whether to show a progress bar; None shows it in a terminal.

    Attributes:
        graph_: The `CausalGraph`.
        model_: The fitted `StructuralModel`, over standardised columns.
        schema_: The units of the columns.
        settings_: The `Settings` used.
        history_: A DataFrame with one row an epoch, log-densities in the user's units.
        chosen_: "network" or "linear".
        comparison_: The held-out gain of the network over the line, in nats a row, or None.

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
        seed: int = 0,
        device: str = "cpu",
        settings: dict[str, Any] | None = None,
        progress: bool | None = None,
    ) -> None:
        self.graph = graph
        self.preset = preset
        self.seed = seed
        self.device = device
        self.settings = settings
        self.progress = progress

    # ------------------------------------------------------------------------------- fitting

    def fit(
        self,
        df: Table,
        y: None = None,
        *,
        validation: float | Table = 0.1,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> MissCNF:
        """Fits the flow to a table, NaN where a value is unknown.

        Arguments:
            df: A DataFrame, or the path of a CSV or Parquet file.
            y: Ignored; for scikit-learn's sake.
            validation: The share of rows to hold out, or another table of held-out rows.
            checkpoint: A directory that lets an interrupted fit go on to the same bits.
        """
        if self.graph is None:
            raise InputError("a causal graph is needed: MissCNF(graph), such as 'a -> b; b -> c'.")
        graph = CausalGraph.read(self.graph)
        settings = preset_settings(self.preset, **(self.settings or {}))
        device = _device(self.device)
        table = IncompleteTable.read(df, graph.nodes)
        train, held_out = self._split(table, validation)
        shift = (_mean_log_jacobian(train), _mean_log_jacobian(held_out))
        with FitProgress(show=self.progress, shift=shift) as watch:
            fitted = fit_model(
                graph,
                (train.values, train.observed),
                None if held_out is None else (held_out.values, held_out.observed),
                settings,
                seed=self.seed,
                device=device,
                checkpoint=checkpoint,
                watch=watch,
            )
        self.graph_, self.schema_, self.settings_ = graph, table.schema, settings
        self.model_, self.chosen_ = fitted.model.eval().requires_grad_(False), fitted.chosen
        self.comparison_ = fitted.comparison
        self.history_ = _history(fitted.history, shift)
        self.feature_names_in_ = np.asarray(graph.nodes, dtype=object)
        self.n_features_in_ = len(graph)
        return self

    def _split(
        self, table: IncompleteTable, validation: float | Table
    ) -> tuple[IncompleteTable, IncompleteTable | None]:
        if not isinstance(validation, int | float):
            return table, IncompleteTable.read(validation, table.nodes, table.schema)
        if not 0.0 <= validation < 1.0:
            raise InputError(f"validation is a share in [0, 1) or a table; got {validation}.")
        count = int(validation * len(table))
        if count == 0:
            return table, None
        order = torch.randperm(len(table), generator=derive_generator(self.seed, "split"))
        return table.select(order[count:].sort().values), table.select(order[:count].sort().values)

    # ------------------------------------------------------------------------------- density

    def log_prob(
        self,
        df: Table,
        *,
        given: Sequence[str] = (),
        do: Do | None = None,
        quality: bool = False,
        seed: int = 0,
    ) -> pd.Series | pd.DataFrame:
        """Returns the log-density of what each row shows, in the user's units.

        Arguments:
            df: Rows, NaN where a value is unknown; columns may be left out.
            given: Columns to condition on, as far as a row shows them.
            do: Interventions. An intervened column is held at its value, whatever the row shows
                of it, and has no density of its own.
            quality: Whether to return a DataFrame with `standard_error` (0 where exact) and
                `effective_draws` (infinite where exact) beside `log_prob`.
            seed: Where the randomness of integrals without a closed form starts.
        """
        table = self._read(df)
        held = held_values(do, self._graph(), self.schema_, len(table), "log_prob")
        names = [given] if isinstance(given, str) else list(given)
        nodes = [self.graph_.index(name) for name in names]
        result = self._log_prob(table, table.observed, held, seed, "joint")
        if nodes:
            seen = torch.zeros_like(table.observed)
            seen[:, nodes] = table.observed[:, nodes]
            below = self._log_prob(table, seen, held, seed, "given")
            result = RowLikelihood(
                result.log_prob - below.log_prob,
                (result.standard_error**2 + below.standard_error**2).sqrt(),
                torch.minimum(result.effective_draws, below.effective_draws),
            )
        if not quality:
            return pd.Series(result.log_prob.numpy(), index=table.index, name="log_prob")
        columns = {name: getattr(result, name).numpy() for name in RowLikelihood.__annotations__}
        return pd.DataFrame(columns, index=table.index)

    def _log_prob(
        self,
        table: IncompleteTable,
        observed: Tensor,
        held: dict[int, Tensor],
        seed: int,
        purpose: str,
    ) -> RowLikelihood:
        values = torch.where(observed, table.values, 0.0)
        for node, clamp in held.items():
            values[:, node] = clamp
        plan = Plan.make(self.graph_, observed, clamped=held)
        result = observed_log_prob(
            self.model_, values, plan, derive_generator(seed, "log_prob", purpose)
        )
        counted = observed.double()
        counted[:, list(held)] = 0.0
        units = counted @ torch.from_numpy(self.schema_.log_jacobian)
        return RowLikelihood(
            result.log_prob + units, result.standard_error, result.effective_draws
        )

    def score(self, df: Table, y: None = None) -> float:
        """Returns the mean log-density of what the rows show."""
        return float(np.mean(self.log_prob(df)))

    # ------------------------------------------------------------------------------- what if

    def sample(
        self,
        rows: int | None = None,
        *,
        do: Do | None = None,
        given: Table | None = None,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Draws from the model, under interventions if there are any.

        Arguments:
            rows: How many rows; with `given`, how many draws of each row (1).
            do: Interventions.
            given: Rows to complete: draws come from p(rest | what a row shows).
            seed: Where randomness starts.

        Returns:
            A DataFrame; with `given` it has that table's index, or levels (draw, row) where
            there are several draws.
        """
        if given is not None:
            table = self._read(given)
            held = held_values(do, self._graph(), self.schema_, len(table), "sample(given=…)")
            return self._complete(
                table, 1 if rows is None else rows, held, seed, flat=rows is None
            )
        if rows is None:
            raise InputError("sample needs a number of rows, or given= a table to complete.")
        _check_count("rows", rows)
        clamps = read_clamps(do, self._graph(), self.schema_, rows)
        noise = self._noise(rows, seed, "sample")
        return self.schema_.decode_frame(self.model_.generate(noise, clamps))

    def counterfactual(
        self, df: Table, do: Do, *, draws: int | None = None, seed: int = 0
    ) -> pd.DataFrame:
        """Returns what each row would have been under an intervention.

        Rows may have holes: each draw then completes the row from its posterior, so that the noise
        of what is hidden is a posterior draw too. What does not descend from an intervened column
        comes back as the row shows it.

        Arguments:
            df: The factual rows.
            do: Interventions; a function acts on the natural value.
            draws: Draws of each row, in levels (draw, row); None for one, with the rows' index.
            seed: Where randomness starts.
        """
        table = self._read(df)
        clamps = read_clamps(do, self._graph(), self.schema_, len(table))
        if not clamps:
            raise InputError("counterfactual needs an intervention, such as do={'dose': 0.0}.")
        count = 1 if draws is None else draws
        factual = self._draw(table, count, {}, seed)
        values = self.model_.counterfactual(factual, clamps)
        touched = sorted(self.graph_.descendants(clamps))
        return self._frame(table, values, count, flat=draws is None, touched=touched)

    def effect(
        self,
        outcome: str,
        do: Do,
        versus: Do | None = None,
        *,
        draws: int = 100_000,
        seed: int = 0,
    ) -> Effect:
        """Returns E[outcome | do] − E[outcome | versus], both arms with the same noise.

        Arguments:
            outcome: The column.
            do: Interventions of the first arm.
            versus: Interventions of the second arm; none leaves the world as it is.
            draws: Units that are averaged.
            seed: Where randomness starts.
        """
        node = self._graph().index(outcome)
        _check_count("draws", draws, least=2)
        noise = self._noise(draws, seed, "effect")
        arms = []
        for arm in (do, versus):
            clamps = read_clamps(arm, self.graph_, self.schema_, draws)
            column = self.model_.generate(noise, clamps)[:, node].numpy()
            arms.append(self.schema_.columns[node].decode(column))
        return contrast(outcome, do, versus or {}, (arms[0], arms[1]))

    # ------------------------------------------------------------------------------- imputation

    def impute(self, df: Table, draws: int = 5, *, seed: int = 0) -> pd.DataFrame:
        """Returns completed tables, long, with levels (draw, row); observed cells are untouched."""
        return self._complete(self._read(df), draws, {}, seed, flat=False)

    def _complete(
        self,
        table: IncompleteTable,
        draws: int,
        held: dict[int, Tensor],
        seed: int,
        *,
        flat: bool,
    ) -> pd.DataFrame:
        values = self._draw(table, draws, held, seed)
        return self._frame(table, values, draws, flat=flat, touched=sorted(held))

    def _draw(
        self, table: IncompleteTable, draws: int, held: dict[int, Tensor], seed: int
    ) -> Tensor:
        """Returns completions of the rows, (draws, N, d)."""
        _check_count("draws", draws)
        values, observed = table.values.clone(), table.observed
        for node, clamp in held.items():
            values[:, node] = clamp
        plan = Plan.make(self.graph_, observed, clamped=held)
        return draw_completions(
            self.model_, values, plan, draws, derive_generator(seed, "posterior")
        )

    def _frame(
        self,
        table: IncompleteTable,
        values: Tensor,
        draws: int,
        *,
        flat: bool,
        touched: Sequence[int],
    ) -> pd.DataFrame:
        """Returns values (draws, N, d) in the user's units; untouched observed cells bit for bit."""
        raw = table.restore(values)
        if touched:
            decoded = self.schema_.decode(values.numpy())
            raw[..., list(touched)] = decoded[..., list(touched)]
        index = table.index
        if not flat:
            index = pd.MultiIndex.from_product([range(draws), table.index], names=["draw", "row"])
        return pd.DataFrame(raw.reshape(-1, raw.shape[-1]), index=index, columns=list(table.nodes))

    # ------------------------------------------------------------------------------- storage

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the fitted model to a folder, as safetensors and JSON."""
        self._graph()
        about = {
            "schema": self.schema_.to_dict(),
            "settings": self.settings_.to_dict(),
            "seed": self.seed,
            "chosen": self.chosen_,
            "comparison": self.comparison_,
            "history": self.history_.to_dict(orient="list"),
        }
        save_model(folder, self.model_, about)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> MissCNF:
        """Reads a model that `save` wrote; an altered or foreign file is refused."""
        model, about = load_model(folder)
        settings = Settings.from_dict(about["settings"])
        self = cls(graph=model.graph, preset=settings, seed=about["seed"])
        self.graph_, self.settings_ = model.graph, settings
        self.schema_ = Schema.from_dict(about["schema"])
        self.model_ = model.eval().requires_grad_(False)
        self.chosen_, self.comparison_ = about["chosen"], about["comparison"]
        self.history_ = pd.DataFrame(about["history"])
        self.feature_names_in_ = np.asarray(model.graph.nodes, dtype=object)
        self.n_features_in_ = len(model.graph)
        return self

    # ------------------------------------------------------------------------------- helpers

    def _graph(self) -> CausalGraph:
        if not hasattr(self, "model_"):
            raise NotFittedError("this MissCNF is not fitted yet; call fit(df) first.")
        return self.graph_

    def _read(self, df: Table) -> IncompleteTable:
        return IncompleteTable.read(df, self._graph().nodes, self.schema_, require_all=False)

    def _noise(self, rows: int, seed: int, purpose: str) -> Tensor:
        generator = derive_generator(seed, purpose)
        return torch.randn((rows, len(self.graph_)), generator=generator, dtype=torch.float64)


def _check_count(name: str, value: object, least: int = 1) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} is a whole number of at least {least}; got {value!r}.")


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"the device {name!r} cannot be used here; try device='cpu'.") from error
    return device


def _mean_log_jacobian(table: IncompleteTable | None) -> float:
    """Returns nats a row that turn log-densities of standardised rows into the user's units."""
    if table is None:
        return math.nan
    return float((table.observed.double() @ torch.from_numpy(table.schema.log_jacobian)).mean())


def _history(records: list[dict[str, Any]], shift: tuple[float, float]) -> pd.DataFrame:
    frame = pd.DataFrame(records)
    for name, nats in zip(("train", "validation"), shift, strict=True):
        if name in frame:
            frame[name] += nats
    return frame
