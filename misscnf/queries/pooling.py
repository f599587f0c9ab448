r"""Rubin's rules: one answer from the same analysis of several imputed tables.

With estimates q_k and their variances u_k of m completed tables,

    q̄ = mean q_k,    ū = mean u_k,    b = Σ (q_k − q̄)² / (m − 1),    t = ū + (1 + 1/m) b,

q̄ has the standard error √t and a t law with the degrees of freedom of Barnard and Rubin (1999),

    1/ν = λ²/(m − 1) + 1/ν_obs,    ν_obs = (ν_com + 1)/(ν_com + 3) ν_com (1 − λ),

λ = (1 + 1/m) b / t being the share of the variance due to nonresponse, and ν_com those of a
complete table. `riv` = (1 + 1/m) b / ū is the relative increase of the variance, and
`fmi` = (riv + 2/(ν + 3)) / (riv + 1) the fraction of missing information. Names and rules are
those of mice::pool (Rubin, 1987, chapter 3).

The rules ask for tables that differ by all that is not known. Plain `impute(df)` draws from one
fitted model, as if its parameters were known, and b is too small whatever the number of rows;
`impute(df, proper=True)` takes each table from another replicate of the fit (docs/sklearn.md has
figures).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from misscnf.display.notebook import card, number_text
from misscnf.display.tables import Tabular
from misscnf.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Pooled", "pool", "pool_estimates"]


class _Answer(NamedTuple):
    """What an analysis says about one table."""

    names: tuple[str, ...]
    estimates: np.ndarray
    variances: np.ndarray
    df_complete: float | None


@dataclass(frozen=True, eq=False)
class Pooled(Tabular):
    """Pooled estimates. Made by `misscnf.pool`.

    Example:
        >>> from misscnf import pool
        >>> tables = [pd.DataFrame({"x": [1.0, 2.0, 3.0, last]}) for last in (3.0, 4.0, 5.0)]
        >>> pooled = pool(tables, lambda df: (df.mean(), df.var() / len(df)), df_complete=3)
        >>> pooled.m, pooled.to_frame()["estimate"].tolist()
        (3, [2.5])
    """

    table: pd.DataFrame
    """A line a term: estimate, standard_error, lower, upper, statistic, df, p_value (of zero),
    riv, lambda (the share of the variance due to nonresponse), fmi, ubar, b and t."""
    m: int
    """The number of imputed tables."""
    df_complete: float
    """Degrees of freedom of the analysis of a complete table."""
    level: float
    """The probability of the intervals."""

    def to_frame(self) -> pd.DataFrame:
        """Returns a line a term: term, estimate, lower, upper, and all else of `table`."""
        found = self.table.rename_axis("term").reset_index()
        first = ["term", "estimate", "lower", "upper"]
        return found[[*first, *found.columns.drop(first)]]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the estimates with their intervals.

        Arguments:
            ax: Axes to draw into; None makes a figure.
        """
        from misscnf import plots

        return plots.forest(self.to_frame(), unit=f"pooled over {self.m} imputed tables", ax=ax)

    def __str__(self) -> str:
        return f"{self._title()}\n{self._shown().map(number_text).to_string()}"

    def _repr_html_(self) -> str:
        return card(self._title(), tables={"": self._shown()})

    def _shown(self) -> pd.DataFrame:
        """Returns what is printed; `table` has the rest."""
        shown = ["estimate", "standard_error", "lower", "upper", "df", "p_value", "fmi"]
        return self.table[shown]

    def _title(self) -> str:
        complete = number_text(self.df_complete)
        return (
            f"pooled over {self.m} imputed tables, {100 * self.level:g} % intervals, {complete} "
            f"degrees of freedom if complete"
        )


def pool(
    imputed: pd.DataFrame | Iterable[pd.DataFrame],
    estimator: Callable[[pd.DataFrame], Any],
    *,
    df_complete: float | None = None,
    level: float = 0.95,
) -> Pooled:
    """Analyses each imputed table and pools the answers by Rubin's rules.

    Arguments:
        imputed: What `model.impute(df, draws, proper=True)` returns, with levels (draw, row), or
            several completed tables.
        estimator: A function of one table that returns (estimates, variances), each a number, a
            dict, a Series or an array, or a covariance matrix for the second; or a fitted result
            that has `params`, and `bse` or `cov_params()`, as those of statsmodels have.
        df_complete: Degrees of freedom of the analysis of a complete table, mostly rows less
            parameters. None takes `df_resid` of the fitted results, or infinity.
        level: The probability of the intervals.

    Returns:
        A `Pooled`, whose `table` has a row an estimate.

    Example:
        >>> import pandas as pd
        >>> tables = [pd.DataFrame({"x": [1.0, 2.0, 3.0, last]}) for last in (3.0, 4.0, 5.0)]
        >>> pooled = pool(tables, lambda df: (df.mean(), df.var() / len(df)), df_complete=3)
        >>> pooled.table.loc["x", ["estimate", "standard_error"]].round(3).tolist()
        [2.5, 0.736]
    """
    answers = [_read_answer(estimator(table), k) for k, table in enumerate(_tables(imputed))]
    others = [k for k, answer in enumerate(answers) if answer.names != answers[0].names]
    if others:
        k = others[0]
        raise InputError(
            f"the estimator returns {list(answers[0].names)} for table 0 and "
            f"{list(answers[k].names)} for table {k}; the same terms are needed of every table."
        )
    if df_complete is None:
        known = [answer.df_complete for answer in answers if answer.df_complete is not None]
        df_complete = min(known, default=None)
    return pool_estimates(
        [pd.Series(answer.estimates, answer.names) for answer in answers],
        [answer.variances for answer in answers],
        df_complete=df_complete,
        level=level,
    )


def pool_estimates(
    estimates: Sequence[Any],
    variances: Sequence[Any],
    *,
    df_complete: float | None = None,
    level: float = 0.95,
) -> Pooled:
    """Pools estimates that are there already, by Rubin's rules.

    Arguments:
        estimates: Those of each imputed table: numbers, dicts, Series or arrays.
        variances: Their squared standard errors, in the same form.
        df_complete: Degrees of freedom of the analysis of a complete table; None is infinity.
        level: The probability of the intervals.
    """
    if len(estimates) != len(variances):
        raise InputError(
            f"there are {len(estimates)} estimates and {len(variances)} variances; give one of "
            f"each for every imputed table."
        )
    if len(estimates) < 2:
        raise InputError(
            f"pooling needs at least 2 imputed tables and got {len(estimates)}, since it learns "
            f"from how they differ; ask for impute(df, draws=20, proper=True)."
        )
    if not 0 < level < 1:
        raise InputError(f"level is a probability between 0 and 1, such as 0.95; got {level!r}.")
    complete = math.inf if df_complete is None else float(df_complete)
    if not complete > 0:
        raise InputError(f"df_complete is a positive number; got {df_complete!r}.")
    answers = [_pair(q, u, k) for k, (q, u) in enumerate(zip(estimates, variances, strict=True))]
    sizes = {len(answer.estimates) for answer in answers}
    if len(sizes) > 1:
        raise InputError(f"the tables have {sorted(sizes)} estimates; the same terms are needed.")
    q = np.stack([answer.estimates for answer in answers])
    u = np.stack([answer.variances for answer in answers])
    names = pd.Index(answers[0].names, name="term")
    sure = (u.mean(0) == 0) & (q.var(0) > 0)
    if sure.any():
        raise InputError(
            f"{names[sure][0]!r} has variance 0 in every table and differs between tables; give "
            f"the variance that its estimate has in a complete table."
        )
    return Pooled(_rubin(names, q, u, complete, level), len(answers), complete, level)


def _rubin(
    names: pd.Index, q: np.ndarray, u: np.ndarray, complete: float, level: float
) -> pd.DataFrame:
    """Returns the pooled table of estimates and variances, each (m, terms)."""
    m = len(q)
    estimate, ubar, b = q.mean(0), u.mean(0), q.var(0, ddof=1)
    between = (1 + 1 / m) * b
    t = ubar + between
    # A term that is the same in all tables and sure in each has variance 0 and nothing missing.
    share = np.divide(between, t, out=np.zeros_like(t), where=t > 0)
    increase = np.divide(between, ubar, out=np.zeros_like(t), where=ubar > 0)
    df = _degrees(share, m, complete)
    error = np.sqrt(t)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = estimate / error
    half = stdtrit(df, (1 + level) / 2) * error
    columns = {
        "estimate": estimate,
        "standard_error": error,
        "lower": estimate - half,
        "upper": estimate + half,
        "statistic": statistic,
        "df": df,
        "p_value": 2 * stdtr(df, -np.abs(statistic)),
        "riv": increase,
        "lambda": share,
        "fmi": (increase + 2 / (df + 3)) / (increase + 1),
        "ubar": ubar,
        "b": b,
        "t": t,
    }
    return pd.DataFrame(columns, index=names)


def _degrees(share: np.ndarray, m: int, complete: float) -> np.ndarray:
    """Returns Barnard and Rubin's degrees of freedom, infinite where nothing limits them."""
    inverse = share**2 / (m - 1)
    if math.isfinite(complete):
        inverse = inverse + 1 / ((complete + 1) / (complete + 3) * complete * (1 - share))
    return np.divide(1.0, inverse, out=np.full_like(share, np.inf), where=inverse > 0)


# ----------------------------------------------------------------------------------- reading


def _tables(imputed: pd.DataFrame | Iterable[pd.DataFrame]) -> list[pd.DataFrame]:
    if isinstance(imputed, pd.DataFrame):
        if imputed.index.nlevels != 2:
            raise InputError(
                "a single table cannot be pooled; give what model.impute(df, draws=20) returns, "
                "with levels (draw, row), or a list of completed tables."
            )
        return [part.droplevel(0) for _, part in imputed.groupby(level=0, sort=False)]
    return list(imputed)


def _read_answer(answer: Any, k: int) -> _Answer:  # noqa: ANN401 - whatever an estimator returns
    if isinstance(answer, tuple) and len(answer) == 2:
        return _pair(*answer, k)
    if hasattr(answer, "params"):
        if hasattr(answer, "bse"):
            variances = np.square(np.asarray(answer.bse, dtype=np.float64))
        elif hasattr(answer, "cov_params"):
            variances = answer.cov_params()
        else:
            raise InputError(
                f"the {type(answer).__name__} that the estimator returns has params, and neither "
                f"bse nor cov_params(); return (estimates, variances) instead."
            )
        df = getattr(answer, "df_resid", None)
        return _pair(answer.params, variances, k)._replace(df_complete=df)
    raise InputError(
        f"the estimator returns {type(answer).__name__} for table {k}; expected (estimates, "
        f"variances), or a fitted result with params and bse."
    )


def _pair(estimates: Any, variances: Any, k: int) -> _Answer:  # noqa: ANN401 - see `pool`
    names, q = _named_vector(estimates, k)
    u = _variances(variances, names, isinstance(estimates, Mapping | pd.Series), k)
    if u.shape != q.shape:
        raise InputError(
            f"table {k} has {len(q)} estimates and variances of shape {u.shape}; give one "
            f"variance an estimate, or a square covariance matrix."
        )
    wrong = ~np.isfinite(q) | ~np.isfinite(u) | (u < 0)
    if wrong.any():
        bad = int(wrong.argmax())
        raise InputError(
            f"{names[bad]!r} of table {k} is {q[bad]:g} with variance {u[bad]:g}; expected a "
            f"finite number and a variance that is not negative."
        )
    return _Answer(names, q, u, None)


def _named_vector(estimates: Any, k: int) -> tuple[tuple[str, ...], np.ndarray]:  # noqa: ANN401
    named = pd.Series(estimates) if isinstance(estimates, Mapping) else estimates
    q = np.asarray(named, dtype=np.float64)
    if q.ndim > 1 or q.size == 0:
        raise InputError(
            f"the estimates of table {k} have the shape {q.shape}; expected a number, a vector, a "
            f"dict or a Series."
        )
    if isinstance(named, pd.Series):
        return tuple(map(str, named.index)), q
    if q.ndim == 0:
        return ("estimate",), q[None]
    return tuple(f"estimate {j}" for j in range(q.size)), q


def _variances(variances: Any, names: tuple[str, ...], by_name: bool, k: int) -> np.ndarray:  # noqa: ANN401, FBT001
    """Returns the variances in the order of the estimates, by name where both have names."""
    if isinstance(variances, Mapping):
        variances = pd.Series(variances)
    if by_name and isinstance(variances, pd.Series | pd.DataFrame):
        labels = [str(label) for label in variances.index]
        if set(labels) != set(names):
            raise InputError(
                f"the estimates of table {k} are called {list(names)} and their variances "
                f"{labels}; give both the same names."
            )
        order = [labels.index(name) for name in names]
        picked = variances.to_numpy(dtype=np.float64)
        return picked[order] if picked.ndim == 1 else np.diag(picked)[order]
    u = np.asarray(variances, dtype=np.float64)
    square = u.ndim == 2 and u.shape[0] == u.shape[1]
    return np.diag(u) if square else np.atleast_1d(u)
