r"""Every question that a fitted model answers, in the user's units.

| question | noise | held | then |
|---|---|---|---|
| sample | fresh | | |
| counterfactual | abducted from the row (a posterior draw where it has holes) | | |
| density of what a row shows | integrated | the observed cells | a sum over factors |
| impute, sample given rows | posterior draws | the observed cells | simulate the barren nodes |

Each is a sweep through the graph (`structural`, `likelihood`, `posterior`), under policies if
there are interventions; densities and posteriors under policies are those of the intervened model
(`model.intervened`). Here tables are read, turned into the model's numbers and brought back, in
the user's units, labels and dtypes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from scipy.special import stdtrit
from torch import Tensor

from misscnf.data.panel import Panel
from misscnf.data.table import IncompleteTable, Table, read_table
from misscnf.draws import derive_generator
from misscnf.errors import InputError
from misscnf.fitting.select.forms import Form
from misscnf.graph.indicators import indicator_of
from misscnf.identification import PanelReport, Report, check
from misscnf.identification.over_time import check_panel
from misscnf.identification.settings import CheckSettings
from misscnf.inference.elimination import Plan
from misscnf.inference.likelihood import RowLikelihood, observed_log_prob
from misscnf.inference.posterior import draw_completions
from misscnf.mechanisms import Rescaled
from misscnf.mechanisms.history import in_units
from misscnf.model import Policy, StructuralModel
from misscnf.model.intervened import worlds
from misscnf.queries.asking import check_count
from misscnf.queries.coefficients import coefficients
from misscnf.queries.density import counted_nodes, row_densities
from misscnf.queries.interventions import Do, read_policies, written
from misscnf.queries.losses import loss_slopes
from misscnf.queries.regimes import at_all_visits
from misscnf.queries.sensitivity import SensitivityMixin
from misscnf.queries.support import FittedReport, measure_support, region_shares
from misscnf.threads import one_thread

__all__ = ["QueryMixin"]

logger = logging.getLogger("misscnf")


class QueryMixin(SensitivityMixin):
    """The questions. The class that mixes it in provides the attributes."""

    forms_: Mapping[str, Form]

    @one_thread()
    def log_prob(
        self,
        df: Table,
        *,
        given: Sequence[str] = (),
        do: Do | None = None,
        holes: bool = True,
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
            do: Interventions: the density is that of a row in the intervened world. A column with
                a value or a rule is what these say, whatever the row shows of it, and has no
                density of its own; a column with a `Draw` has the density that it is drawn from.
                What a rule reads may be missing: it is integrated over.
            holes: Whether what is lost counts where the graph has indicators of loss: the density
                is that of values and holes together, or of the values alone.
            quality: Whether to return a DataFrame with `standard_error` (0 where exact),
                `effective_draws` (infinite where exact) and `reason` (why a row has −∞) beside
                `log_prob`.
            seed: Where the randomness of integrals without a closed form starts.

        Example:
            With `df` and `model` of `MissCNF`:

            >>> usual, odd = model.log_prob(pd.DataFrame({"t": [0.0, 0.0], "y": [0.0, 9.0]}))
            >>> bool(usual > odd)
            True
        """
        table = self._read(df, keep_impossible=True)
        if not holes:
            seen = table.observed.clone()
            seen[:, list(self.schema_.indicators)] = False
            table = replace(table, observed=seen)
        policies = read_policies(do, self._graph(), self.schema_, len(table), seed)
        table = self._unclaimed_hidden(table, policies)
        names = [given] if isinstance(given, str) else list(given)
        nodes = [self.graph_.index(name) for name in names]
        result = self._log_prob(table, table.observed, policies, seed, "joint")
        if nodes:
            seen = torch.zeros_like(table.observed)
            seen[:, nodes] = table.observed[:, nodes]
            below = self._log_prob(table, seen, policies, seed, "given")
            result = _conditional(result, below)
        frame = row_densities(self.model_, table, policies, result)
        return frame if quality else frame["log_prob"]

    def _log_prob(
        self,
        table: IncompleteTable,
        observed: Tensor,
        policies: Mapping[int, Policy],
        seed: int,
        purpose: str,
    ) -> RowLikelihood:
        values = torch.where(observed, table.values, 0.0)
        generator = derive_generator(seed, "log_prob", purpose)
        found = values.new_zeros(3, len(table))
        for world in worlds(self.model_, policies, values, observed):
            plan = Plan.make(world.model.graph, world.observed, clamped=world.held)
            part = observed_log_prob(world.model, world.values, plan, generator)
            rows = (part.log_prob, part.standard_error, part.effective_draws)
            found[:, world.rows] = torch.stack(rows)
        counted = torch.zeros_like(observed)
        nodes = counted_nodes(policies, observed.shape[1])
        counted[:, nodes] = observed[:, nodes]
        return RowLikelihood(found[0] + table.log_slope(counted), found[1], found[2])

    def score(self, df: Table, y: None = None) -> float:
        """Returns the mean log-density of what the rows show.

        Arguments:
            df: Rows with holes.
            y: Ignored; for scikit-learn's sake.

        Example:
            With `df` and `model` of `MissCNF`:

            >>> bool(np.isclose(model.score(df), model.log_prob(df).mean()))
            True
        """
        return float(np.mean(self.log_prob(df)))

    def sample(
        self,
        rows: int | None = None,
        *,
        do: Do | None = None,
        given: Table | None = None,
        holes: bool = False,
        latents: bool = False,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Draws from the model, under interventions if there are any.

        Arguments:
            rows: How many rows; with `given`, how many draws of each row (1).
            do: Interventions: values, rules or draws (docs/policies.md). Auxiliary columns are
                left out then: nothing is known of what it does to them.
            given: Rows to complete: draws come from p(rest | what a row shows), in the intervened
                world. What a row shows of a column with a value or a rule is left out; of a column
                with a `Draw` it counts, so leave it empty to have it drawn.
            holes: Whether rows come as collected: with holes, where the graph has indicators of
                loss that say so. Not with `given`.
            latents: Whether hidden causes have columns too, in the model's own unit.
            seed: Where randomness starts.

        Returns:
            A DataFrame; with `given` it has that table's index, or levels (draw, row) where
            there are several draws.

        Example:
            With `df` and `model` of `MissCNF`:

            >>> float(model.sample(1000, do={"t": 1.0})["y"].mean().round())
            2.0
        """
        if given is not None:
            self._refuse_panel("sample with given=", "impute(df) completes the rows")
            table = self._read(given)
            policies = read_policies(do, self._graph(), self.schema_, len(table), seed)
            table = self._unclaimed_hidden(table, policies)
            values = self._draw(table, 1 if rows is None else rows, policies, seed)
            counted = counted_nodes(policies, len(self.graph_))
            replaced = set(range(len(self.graph_))).difference(counted)
            drawn = self._frame(
                table,
                values,
                flat=rows is None,
                replaced=replaced,
                exact=policies,
                latents=latents,
            )
            return self._claimed(drawn, policies)
        if rows is None:
            raise InputError("sample needs a number of rows, or given= a table to complete.")
        check_count("rows", rows)
        if self.panel_ is not None:
            do = at_all_visits(do, self.panel_)
        policies = read_policies(do, self._graph(), self.schema_, rows, seed)
        self._warn_beyond(do)
        noise = self._noise(rows, seed, "sample")
        values = self.model_.generate(noise, policies)
        drawn = self.schema_.decode_frame(values, exact=policies, holes=holes, latents=latents)
        return self._claimed(drawn if self.panel_ is None else self.panel_.long(drawn), policies)

    def _unclaimed_hidden(
        self, table: IncompleteTable, policies: Mapping[int, Policy]
    ) -> IncompleteTable:
        """Hides auxiliary columns under an intervention: of what it does to them none knows."""
        extra = [self.graph_.index(name) for name in self.graph_.auxiliary]
        if not extra or not policies:
            return table
        seen = table.observed.clone()
        seen[:, extra] = False
        return replace(table, observed=seen)

    def _claimed(self, drawn: pd.DataFrame, policies: Mapping[int, Policy]) -> pd.DataFrame:
        """Leaves auxiliary columns out under an intervention."""
        return drawn.drop(columns=list(self.graph_.auxiliary)) if policies else drawn

    @one_thread()
    def counterfactual(
        self,
        df: Table,
        do: Do,
        *,
        draws: int | None = None,
        interval: float | None = None,
        data: Table | None = None,
        replicates: int | None = None,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Returns what each row would have been under an intervention.

        Rows may have holes: each draw then completes the row from its posterior, so that the noise
        of what is hidden is a posterior draw too. What does not descend from an intervened column
        comes back as the row shows it; auxiliary columns are left out. Many noises make one
        discrete value: each draw has one of them, from its law given the row (`docs/kinds.md` says
        what that assumes).

        Arguments:
            df: The factual rows. Over time, a long table: what comes back has every visit of each
                person up to the event that ends their course in the intervened world.
            do: Interventions: values, rules or draws (docs/policies.md), over time regimes. A rule
                reads the row as it would have been; its own column, as it would have been by
                itself.
            draws: Draws of each row, in levels (draw, row); None for one, with the rows' index.
            interval: A level such as 0.95: instead of draws, a line a row with the mean of its
                draws (the most frequent level), and for each column of numbers that the
                intervention leads to the ends `name_lower` and `name_upper`. They allow for what
                the row hides and, through replicates, for the sampling error of the fit.
            data: The table of the fit, where the model was loaded from disk.
            replicates: How many; as in `effect`.
            seed: Where randomness starts.

        Example:
            With `df` and `model` of `MissCNF`:

            >>> row = pd.DataFrame({"t": [1.0], "y": [5.0]})
            >>> float(model.counterfactual(row, do={"t": 0.0})["y"].round().iloc[0])  # 5 less 2
            3.0
        """
        self._graph()  # refuses a model that is not fitted
        if self.panel_ is not None:
            if interval is not None and self.panel_.events:
                raise InputError(
                    f"{next(iter(self.panel_.events))!r} ends a course, at another visit in each "
                    f"draw, so that no line of means stands for a person; ask for draws=20, or "
                    f"for the risk."
                )
            do = at_all_visits(do, self.panel_)
        self._refuse_level(interval, replicates)
        table = self._read(df)
        several = self.settings_.replicates.row_completions if interval is not None else 1
        count = several if draws is None else draws
        check_count("draws", count)
        policies = read_policies(do, self._graph(), self.schema_, (count, len(table)), seed)
        if not policies:
            raise InputError("counterfactual needs an intervention, such as do={'dose': 0.0}.")
        self._warn_beyond(do)

        def sweep(model: StructuralModel, *purpose: int) -> Tensor:
            factual = self._draw(table, count, {}, seed, model, *purpose)
            return model.counterfactual(factual, policies, derive_generator(seed, "abduction"))

        values = sweep(self.model_)
        touched = self.graph_.descendants(policies)
        if interval is None:
            shown = self._frame(
                table, values, flat=draws is None, replaced=touched, exact=policies
            )
            if self.panel_ is not None:
                return _courses(self.panel_, shown, table.index)
            return self._claimed(shown, policies)
        found, _ = self._replicates(interval, data, replicates)
        if found is not None and found.doubt is not None:
            raise InputError(f"no interval can be given: {found.doubt}")
        others = [sweep(model, b).mean(0) for b, model in enumerate(found or ())]
        discrete = torch.tensor([domain.states is not None for domain in self.schema_.domains])
        middle = torch.where(discrete, values.mode(0).values, values.mean(0))
        shown = self._frame(table, middle[None], flat=True, replaced=touched, exact=policies)
        shown = self._claimed(shown, policies)
        named = map(self.graph_.index, shown.columns)
        nodes = [
            j for j in sorted((touched - set(policies)).intersection(named)) if not discrete[j]
        ]
        shown = self._with_ends(shown, values, torch.stack(others), nodes, interval)
        if self.panel_ is not None:
            return _courses_with_ends(self.panel_, shown, table.index)
        return shown

    def _with_ends(
        self, shown: pd.DataFrame, values: Tensor, others: Tensor, nodes: list[int], level: float
    ) -> pd.DataFrame:
        """Adds the ends of intervals of some nodes, worked out on the model's scale.

        The variance is that of a row's draws by the fit (K, N, d), which is what it hides, and
        that of their means over replicates (B, N, d), which is the fit's.
        """
        hidden = values.var(0) if len(values) > 1 else torch.zeros_like(values[0])
        spread = (hidden + others.var(0)).sqrt()
        by = float(stdtrit(len(others) - 1, 0.5 + level / 2)) * spread
        middle = values.mean(0)
        for j in nodes:
            column = self.schema_.columns[j]
            for end, sign in (("lower", -1.0), ("upper", 1.0)):
                name = f"{column.name}_{end}"
                if name in shown:
                    raise InputError(f"the table has a column {name!r} already; rename it.")
                numbers = column.decode((middle + sign * by)[:, j].numpy())
                if column.domain.kind == "count":
                    numbers = np.maximum(numbers, 0.0)  # there are no fewer
                known = (by[:, j] <= 1e-12 * middle[:, j].abs().clamp(min=1.0)).numpy()
                cells = pd.to_numeric(shown[column.name], errors="coerce").to_numpy(dtype=float)
                numbers = np.where(known & np.isfinite(cells), cells, numbers)
                place = list(shown.columns).index(column.name) + (1 if sign < 0 else 2)
                shown.insert(place, name, numbers)
        return shown

    def summary(self) -> pd.DataFrame:
        """Returns what the model is made of: a line for each column and cause.

        The columns are column, kind, form, cause, coefficient and standard_error. Coefficients
        are those of lines, in the user's units, where no log or logit scale is in the way: of a
        count on the log of its mean, of a yes-or-no or ordinal column on its log-odds. Those of a
        loss are log-odds, a standard deviation of what drives it (`loss_`). Standard errors are
        there once an interval has replicated the fit.

        Example:
            With `df` and `model` of `MissCNF`:

            >>> told = model.summary().set_index("column")
            >>> told.loc["y", "cause"], float(told.loc["y", "coefficient"].round())
            ('t', 2.0)
        """
        self._graph()
        kept = [found for found, _ in self._cache.replicates.values() if found.doubt is None]
        units = [self._in_units(model) for found in kept[:1] for model in found]
        table = coefficients(self.structural_model(), units, self.schema_.columns)
        slopes = self.loss_.assign(column=self.loss_["column"].map(indicator_of))
        slopes = slopes.rename(columns={"driver": "cause", "log_odds": "coefficient"})
        table = table.set_index(["column", "cause"])
        table.update(slopes.set_index(["column", "cause"]))
        table = table.reset_index()
        kinds = {column.name: column.shown_kind for column in self.schema_.columns}
        forms = {name: str(form) for name, form in self.forms_.items()}
        nodes = pd.DataFrame(
            {"column": list(kinds), "kind": kinds.values(), "form": forms.values()}
        )
        return nodes.merge(table, how="left", on="column")

    @property
    def loss_(self) -> pd.DataFrame:
        """What drives each loss of the graph, and how strongly: log-odds a standard deviation.

        Standard errors, intervals and how much the rows know of each slope are there once an
        interval has replicated the fit.
        """
        self._graph()
        kept = [found for found, _ in self._cache.replicates.values() if found.doubt is None]
        others = [model for found in kept[:1] for model in found]
        about = (self.schema_.columns, self.settings_.replicates, self.loss_evidence_)
        return loss_slopes(self.model_, others, *about, self.loss_starts_)

    @one_thread()
    def impute(
        self,
        df: Table,
        draws: int = 5,
        *,
        proper: bool = False,
        latents: bool = False,
        data: Table | None = None,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Returns completed tables, with levels (draw, row); observed cells are untouched.

        All columns of the table come back in their order, those outside the graph as they are.

        Arguments:
            df: Rows with holes.
            draws: Completed tables.
            proper: Whether each table comes from another replicate of the fit, so that the tables
                differ by what the fit does not know too. Pooled standard errors are right only
                then (Rubin 1987); it costs what an interval costs.
            latents: Whether hidden causes have columns too: factor scores, as posterior draws.
            data: The table of the fit, where the model was loaded from disk and `proper` needs it.
            seed: Where randomness starts.

        Example:
            With `df` and `model` of `MissCNF`:

            >>> tables = model.impute(df, 5, proper=True)
            >>> len(tables.groupby(level="draw")), int(tables.isna().sum().sum())
            (5, 0)
        """
        table = self._read(df)
        check_count("draws", draws)
        if proper:
            found, _ = self._replicates(0.5, data, None)
            others = [] if found is None else found.models
            models = [others[draw % len(others)] for draw in range(draws)]
            parts = [self._draw(table, 1, {}, seed, model, i) for i, model in enumerate(models)]
        else:
            parts = [self._draw(table, draws, {}, seed)]
        drawn = torch.cat(parts)
        completed = self._frame(table, drawn, flat=False, replaced=(), exact=(), latents=latents)
        frame = self._long_rows(df)
        if self.panel_ is not None and frame is not None:
            wide = [completed.loc[[draw]] for draw in range(draws)]
            long = {draw: self.panel_.long(one, frame) for draw, one in enumerate(wide)}
            return pd.concat(long, names=["draw", "row"])
        return table.carry_along(completed)

    def _long_rows(self, df: Table) -> pd.DataFrame | None:
        """Returns a table with a row a visit, None where it is none."""
        if self.panel_ is None or isinstance(df, IncompleteTable):
            return None
        frame = read_table(df)
        return frame if self.panel_.is_long(frame) else None

    def _draw(
        self,
        table: IncompleteTable,
        draws: int,
        policies: Mapping[int, Policy],
        seed: int,
        model: StructuralModel | None = None,
        *purpose: int,
    ) -> Tensor:
        """Returns completions of the rows in the world under policies, (draws, N, d)."""
        check_count("draws", draws)
        generator = derive_generator(seed, "posterior", *purpose)
        found = table.values.new_zeros(draws, *table.values.shape)
        for world in worlds(model or self.model_, policies, table.values, table.observed):
            plan = Plan.make(world.model.graph, world.observed, clamped=world.held)
            part = draw_completions(world.model, world.values, plan, draws, generator)
            found[:, world.rows] = part[..., world.place]
        return found

    def _frame(
        self,
        table: IncompleteTable,
        values: Tensor,
        *,
        flat: bool,
        replaced: Collection[int],
        exact: Collection[int],
        latents: bool = False,
    ) -> pd.DataFrame:
        """Returns values (draws, N, d) as the user's cells; what is not replaced, bit for bit."""
        names, levels = ["draw", "row"], [range(len(values)), table.index]
        index = table.index if flat else pd.MultiIndex.from_product(levels, names=names)
        return table.complete(values, index, replaced=replaced, exact=exact, latents=latents)

    def check(
        self,
        df: Table,
        effect: tuple[str, str] | None = None,
        *,
        do: Do | None = None,
        seed: int = 0,
        settings: CheckSettings | Mapping[str, object] | None = None,
    ) -> FittedReport | PanelReport:
        """Reports what the holes of the fitted table leave identified, and where answers leave it.

        Over time it is the report on the families of the graph over time, a `PanelReport`.

        Arguments:
            df: The rows that the model was fitted to.
            effect: (treatment, outcome), to report only the families that this effect needs.
            do: An intervention: how much of what it leads to was never revealed?
            seed: Where randomness starts.
            settings: `CheckSettings`, or changes by name, such as `{"support.draws": 500}`.

        Returns:
            A `FittedReport`; over time a `PanelReport`.

        Example:
            With `df` and `model` of `MissCNF`:

            >>> report = model.check(df, do={"t": 9})  # nobody is near 9
            >>> report.ok, len(report.warnings)
            (False, 1)
        """
        nodes = self._graph().nodes
        if self.panel_ is not None:
            if do is not None:
                self._refuse_panel("check with do=", "leave it out")
            wide = self._named(df)
            assert isinstance(wide, pd.DataFrame)
            return check_panel(self.panel_, self.schema_, wide, effect, settings)
        if self._drawn_from is not None:
            df = self._read_again(df, counted=True)
        table = IncompleteTable.read(self._named(df), nodes, self.schema_, unseen=self.unseen)
        report = check(table, self.graph_, effect, settings=settings)
        assert isinstance(report, Report)
        rules = report.settings.support
        policies = read_policies(do, self.graph_, self.schema_, rules.draws, seed)
        leaning = {self.graph_.index(name) for name in report.needed}
        hidden, families = self.graph_.latent_nodes, self.graph_.families
        leaning = {i for i in leaning if hidden.isdisjoint(families[i])}  # none is revealed
        if policies:
            leaning &= self.graph_.descendants(policies)
        question = f"under {written(do)}" if do else "without an intervention"
        support = measure_support(self.model_, table, policies, leaning, question, rules, seed)
        completed = self._draw(table, 1, {}, seed)[0]
        shares = region_shares(report.regions, self.schema_, completed)
        regions = report.regions.assign(**{"posterior share": shares})
        return FittedReport(replace(report, regions=regions), support, question)

    def structural_model(self, *, holes: bool = True) -> StructuralModel:
        """Returns the model in the user's units, for what the questions above do not cover.

        Discrete columns are counts, and the codes 0, 1, … of levels in `schema_`.

        Arguments:
            holes: Whether indicators of loss are nodes of it, where the graph has them; otherwise
                it is the model of the values alone.

        Example:
            With `df` and `model` of `MissCNF`:

            >>> scm = model.structural_model()
            >>> form = scm.mechanism(1).linear_form()
            >>> form.weights.detach().round().tolist()
            [2.0]
        """
        self._graph()
        model = self._in_units(self.model_)
        if holes or not model.graph.indicators:
            return model
        alone = model.graph.without_indicators()
        laws = [model.law(model.graph.index(name)) for name in alone.nodes]
        return StructuralModel(alone, laws)

    def _in_units(self, model: StructuralModel) -> StructuralModel:
        units, graph = [column.unit for column in self.schema_.columns], self.graph_
        read = {
            i: in_units(r, [units[j] for j in graph.parents[i]]) for i, r in graph.readings.items()
        }
        kept = {i: found for i, found in read.items() if found is not None}
        mechanisms = [
            Rescaled(model.law(i), units[i], kept[i][1])
            if i in kept
            else Rescaled(model.mechanism(i), units[i], [units[j] for j in parents])
            for i, parents in enumerate(graph.parents)
        ]
        readings = {i: reading for i, (reading, _) in kept.items()}
        return StructuralModel(graph.with_readings(readings), mechanisms)


def _courses(panel: Panel, shown: pd.DataFrame, people: pd.Index) -> pd.DataFrame:
    """Returns the courses of people as a long table, in levels (draw, row) where drawn often."""
    if shown.index.nlevels > 1:
        draws = shown.index.get_level_values(0).unique()
        parts = {draw: _courses(panel, shown.loc[draw], people) for draw in draws}
        return pd.concat(parts, names=["draw", "row"])
    found = panel.long(shown)
    found[panel.id] = people.to_numpy()[found[panel.id].to_numpy()]
    return found


def _courses_with_ends(panel: Panel, shown: pd.DataFrame, people: pd.Index) -> pd.DataFrame:
    """Returns the courses of people with the ends of each cell behind its column."""
    found = _courses(panel, shown, people)
    for name in panel.template.varying:
        for end in ("upper", "lower"):
            ends = {node: shown.get(f"{node}_{end}", np.nan) for node in panel.at(name)}
            if any(f"{node}_{end}" in shown for node in ends):
                cells = _courses(panel, shown.assign(**ends), people)[name]
                found.insert(list(found.columns).index(name) + 1, f"{name}_{end}", cells)
    return found


def _conditional(joint: RowLikelihood, below: RowLikelihood) -> RowLikelihood:
    """Returns log p(shown | given); −∞ where what is given has probability zero itself."""
    never = below.log_prob.isneginf()
    return RowLikelihood(
        torch.where(never, -torch.inf, joint.log_prob - below.log_prob),
        (joint.standard_error**2 + below.standard_error**2).sqrt(),
        torch.minimum(joint.effective_draws, below.effective_draws),
    )
