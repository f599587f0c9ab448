r"""Every question that a fitted model answers, in the user's units.

| question | noise | held | then |
|---|---|---|---|
| sample | fresh | interventions, if any | |
| counterfactual | abducted from the row (a posterior draw where it has holes) | interventions | |
| density of what a row shows | integrated | the observed cells | a sum over factors |
| impute | posterior draws | the observed cells | simulate the barren nodes |

Each is a sweep through the graph (`structural`, `likelihood`, `posterior`); here tables are read,
turned into the model's numbers and brought back, in the user's units, labels and dtypes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from misscnf.data.table import IncompleteTable, Schema, Table
from misscnf.draws import derive_generator
from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.identification import check
from misscnf.identification.settings import CheckSettings
from misscnf.inference.elimination import Plan
from misscnf.inference.likelihood import RowLikelihood, observed_log_prob
from misscnf.inference.posterior import draw_completions
from misscnf.mechanisms import Rescaled
from misscnf.model import StructuralModel
from misscnf.queries.asking import EffectMixin, check_count
from misscnf.queries.density import row_densities
from misscnf.queries.effects import written
from misscnf.queries.interventions import Do, held_values, read_clamps
from misscnf.queries.support import FittedReport, measure_support, region_shares

__all__ = ["QueryMixin"]

logger = logging.getLogger("misscnf")


class QueryMixin(EffectMixin):
    """The questions. The class that mixes it in provides the four attributes."""

    graph_: CausalGraph
    model_: StructuralModel
    schema_: Schema
    unseen: str

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

        Where some columns are discrete, this is the density of the continuous ones times the
        probability of the discrete ones. A row that shows a value of probability zero, such as a
        negative count, has −∞.

        Arguments:
            df: Rows, NaN where a value is unknown; columns may be left out.
            given: Columns to condition on, as far as a row shows them.
            do: Interventions. An intervened column is held at its value, whatever the row shows
                of it, and has no density of its own.
            quality: Whether to return a DataFrame with `standard_error` (0 where exact),
                `effective_draws` (infinite where exact) and `reason` (why a row has −∞) beside
                `log_prob`.
            seed: Where the randomness of integrals without a closed form starts.
        """
        table = self._read(df, keep_impossible=True)
        held = held_values(do, self._graph(), self.schema_, len(table), "log_prob")
        names = [given] if isinstance(given, str) else list(given)
        nodes = [self.graph_.index(name) for name in names]
        result = self._log_prob(table, table.observed, held, seed, "joint")
        if nodes:
            seen = torch.zeros_like(table.observed)
            seen[:, nodes] = table.observed[:, nodes]
            below = self._log_prob(table, seen, held, seed, "given")
            result = _conditional(result, below)
        frame = row_densities(self.model_, table, held, result)
        return frame if quality else frame["log_prob"]

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
        counted = observed.clone()
        counted[:, list(held)] = False
        units = table.log_slope(counted)
        return RowLikelihood(
            result.log_prob + units, result.standard_error, result.effective_draws
        )

    def score(self, df: Table, y: None = None) -> float:
        """Returns the mean log-density of what the rows show."""
        return float(np.mean(self.log_prob(df)))

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
        check_count("rows", rows)
        clamps = read_clamps(do, self._graph(), self.schema_, rows)
        self._warn_beyond(do)
        noise = self._noise(rows, seed, "sample")
        return self.schema_.decode_frame(self.model_.generate(noise, clamps), exact=clamps)

    def counterfactual(
        self, df: Table, do: Do, *, draws: int | None = None, seed: int = 0
    ) -> pd.DataFrame:
        """Returns what each row would have been under an intervention.

        Rows may have holes: each draw then completes the row from its posterior, so that the noise
        of what is hidden is a posterior draw too. What does not descend from an intervened column
        comes back as the row shows it. Many noises make one discrete value: each draw has one of
        them, from its law given the row (`docs/kinds.md` says what that assumes).

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
        self._warn_beyond(do)
        count = 1 if draws is None else draws
        factual = self._draw(table, count, {}, seed)
        abduction = derive_generator(seed, "abduction")
        values = self.model_.counterfactual(factual, clamps, abduction)
        touched = self.graph_.descendants(clamps)
        return self._frame(table, values, flat=draws is None, replaced=touched, exact=clamps)

    def impute(
        self,
        df: Table,
        draws: int = 5,
        *,
        proper: bool = False,
        data: Table | None = None,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Returns completed tables, with levels (draw, row); observed cells are untouched.

        Arguments:
            df: Rows with holes.
            draws: Completed tables.
            proper: Whether each table comes from another replicate of the fit, so that the tables
                differ by what the fit does not know too. Pooled standard errors are right only
                then (Rubin 1987); it costs what an interval costs.
            data: The table of the fit, where the model was loaded from disk and `proper` needs it.
            seed: Where randomness starts.
        """
        table = self._read(df)
        if not proper:
            return self._complete(table, draws, {}, seed, flat=False)
        check_count("draws", draws)
        models = self._replicates(0.5, data, None)
        parts = [
            self._draw(table, 1, {}, seed, models[draw % len(models)], draw)
            for draw in range(draws)
        ]
        return self._frame(table, torch.cat(parts), flat=False, replaced=(), exact=())

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
        return self._frame(table, values, flat=flat, replaced=held, exact=held)

    def _draw(
        self,
        table: IncompleteTable,
        draws: int,
        held: dict[int, Tensor],
        seed: int,
        model: StructuralModel | None = None,
        *purpose: int,
    ) -> Tensor:
        """Returns completions of the rows, (draws, N, d)."""
        check_count("draws", draws)
        values, observed = table.values.clone(), table.observed
        for node, clamp in held.items():
            values[:, node] = clamp
        plan = Plan.make(self.graph_, observed, clamped=held)
        generator = derive_generator(seed, "posterior", *purpose)
        return draw_completions(model or self.model_, values, plan, draws, generator)

    def _frame(
        self,
        table: IncompleteTable,
        values: Tensor,
        *,
        flat: bool,
        replaced: Collection[int],
        exact: Collection[int],
    ) -> pd.DataFrame:
        """Returns values (draws, N, d) as the user's cells; what is not replaced, bit for bit."""
        index = table.index
        if not flat:
            index = pd.MultiIndex.from_product(
                [range(len(values)), table.index], names=["draw", "row"]
            )
        return table.complete(values, index, replaced=replaced, exact=exact)

    def check(
        self,
        df: Table,
        effect: tuple[str, str] | None = None,
        *,
        do: Do | None = None,
        seed: int = 0,
        settings: CheckSettings | Mapping[str, object] | None = None,
    ) -> FittedReport:
        """Reports what the holes of the fitted table leave identified, and where answers leave it.

        Arguments:
            df: The rows that the model was fitted to.
            effect: (treatment, outcome), to report only the families that this effect needs.
            do: An intervention: how much of what it leads to was never revealed?
            seed: Where randomness starts.
            settings: `CheckSettings`, or changes by name, such as `{"support.draws": 500}`.
        """
        nodes = self._graph().nodes
        table = IncompleteTable.read(self._named(df), nodes, self.schema_, unseen=self.unseen)
        report = check(table, self.graph_, effect, settings=settings)
        rules = report.settings.support
        clamps = read_clamps(do, self.graph_, self.schema_, rules.draws)
        leaning = {self.graph_.index(name) for name in report.needed}
        if clamps:
            leaning &= self.graph_.descendants(clamps)
        question = f"under {written(do)}" if do else "without an intervention"
        support = measure_support(self.model_, table, clamps, leaning, question, rules, seed)
        completed = self._draw(table, 1, {}, seed)[0]
        shares = region_shares(report.regions, self.schema_, completed)
        regions = report.regions.assign(**{"posterior share": shares})
        return FittedReport(replace(report, regions=regions), support, question)

    def _named(self, df: Table) -> Table:
        """Returns rows with the names of their columns; the class that mixes it in knows them."""
        return df

    def structural_model(self) -> StructuralModel:
        """Returns the model in the user's units, for what the questions above do not cover.

        Discrete columns are counts, and the codes 0, 1, … of levels in `schema_`.
        """
        self._graph()
        units = [column.unit for column in self.schema_.columns]
        mechanisms = [
            Rescaled(self.model_.mechanism(i), units[i], [units[j] for j in parents])
            for i, parents in enumerate(self.graph_.parents)
        ]
        return StructuralModel(self.graph_, mechanisms)

    def _read(self, df: Table, *, keep_impossible: bool = False) -> IncompleteTable:
        return IncompleteTable.read(
            df,
            self._graph().nodes,
            self.schema_,
            unseen=self.unseen,
            keep_impossible=keep_impossible,
            require_all=False,
        )


def _conditional(joint: RowLikelihood, below: RowLikelihood) -> RowLikelihood:
    """Returns log p(shown | given); −∞ where what is given has probability zero itself."""
    log_prob = torch.where(
        torch.isneginf(below.log_prob), -torch.inf, joint.log_prob - below.log_prob
    )
    return RowLikelihood(
        log_prob,
        (joint.standard_error**2 + below.standard_error**2).sqrt(),
        torch.minimum(joint.effective_draws, below.effective_draws),
    )
