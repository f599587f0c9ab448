r"""A fitted flow: what it knows of its fit, its files, and every question that it answers.

`MissCNF` is one that can be fitted, and an estimator of scikit-learn. The command asks models of
files, which are fitted already: it takes this class, and waits neither for scikit-learn nor for
the modules of a fit.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from misscnf.data.column_names import ArrayLike, column_names, name_columns, refuse_width
from misscnf.data.panel import Panel
from misscnf.data.table import IncompleteTable, Schema, Table, read_table
from misscnf.display.notebook import card
from misscnf.errors import ModelFileError
from misscnf.fitting.replicates import Replicates
from misscnf.fitting.rivals import SolvedRival, Without
from misscnf.fitting.select.forms import Form
from misscnf.fitting.select.means import Rival
from misscnf.fitting.settings import Settings
from misscnf.fitting.told_losses import LossEvidence
from misscnf.identification.independences import Contradiction
from misscnf.identification.unlikely import Unlikely
from misscnf.identification.words import listed
from misscnf.mechanisms import Shape
from misscnf.model import StructuralModel, Structure
from misscnf.model.saved_replicates import drop_replicates, load_replicates, save_replicates
from misscnf.model.storage import fingerprint, load_model, refusing, save_model
from misscnf.options import from_dict
from misscnf.queries.asking import Asked, Cache
from misscnf.queries.simulate import QueryMixin
from misscnf.queries.support import rough_sentence

__all__ = ["FittedFlow", "facts"]


class FittedFlow(QueryMixin):
    """A fitted flow; the attributes of `MissCNF` that end in an underscore are described there."""

    kinds_: pd.DataFrame
    comparison_: dict[str, Any] | None
    timings_: dict[str, float]
    loss_starts_: pd.DataFrame
    loss_evidence_: LossEvidence
    history_: pd.DataFrame
    n_features_in_: int
    _names: tuple[str, ...] | None = None
    panel_: Panel | None = None

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 - the arguments of `MissCNF`
        vars(self).update(given)

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

    def _richer_than_lines(self) -> list[str]:
        """Returns the forms that are more than lines, each with its nodes, in words."""
        found: dict[str, list[str]] = {}
        for name, form in self.forms_.items():
            if form.name != "line":
                found.setdefault(str(form), []).append(name)
        return [f"{form} for {listed(names)}" for form, names in found.items()]

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
        if self.panel_ is not None:
            frame = read_table(name_columns(df))
            return self.panel_.wide(frame) if self.panel_.is_long(frame) else frame
        names = self._names
        if names is None:
            names = tuple(column_names(self.n_features_in_))
            if isinstance(df, pd.DataFrame) and not set(names) & set(df.columns):
                # Fitted to an array and asked with a frame: scikit-learn goes by position.
                refuse_width(df.shape[1], len(names), type(self).__name__)
                return df.set_axis(list(names), axis=1)
        return name_columns(df, list(names), type(self).__name__)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the fitted model to a folder, as safetensors and JSON.

        Replicates of the fit that intervals have made are saved beside it, so that a further
        interval of the loaded model costs a sweep, and asks for no table. Where effects are
        averaged over the rows of the table by default, `replicates.safetensors` holds these too,
        and is the one file to leave out if the folder is given to others.

        Arguments:
            folder: Where it goes; it is made, or replaced.

        Example:
            With `df` and `model` of `MissCNF`:

            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     model.save(folder)
            ...     again = type(model).load(folder)
            >>> again.sample(3).equals(model.sample(3))
            True
        """
        self._graph()  # refuses a model that is not fitted
        history = self.history_.astype(object)
        about = {
            "schema": self.schema_.to_dict(),
            "settings": self.settings_.to_dict(),
            "seed": self.seed,
            "unseen": self.unseen,
            "table": self._digest,
            "stands for": self._stands_for,
            "drawn from": self._drawn_from,
            "marks": list(self._marks),
            "panel": None if self.panel_ is None else self.panel_.to_dict(),
            "comparison": self.comparison_,
            "rough": self.rough_,
            "rivals": {name: asdict(rival) for name, rival in self.rivals_.items()},
            "unlikely": [asdict(one) for one in self.unlikely_],
            "timings": self.timings_,
            "loss starts": self.loss_starts_.to_dict("records"),
            "loss evidence": asdict(self.loss_evidence_),
            "denied": [asdict(line) for line in self.denied_],
            "forms": {name: form.to_dict() for name, form in self.forms_.items()},
            "columns": self.n_features_in_ if self._names is None else list(self._names),
            # JSON has no NaN, which an epoch has for what it did not measure.
            "history": history.where(history.notna(), None).to_dict("list"),
        }
        save_model(folder, self.model_, about)
        plain = [key for key in self._cache.replicates if not key.endswith("whole")]
        if plain:
            self._cache.unsaved = self._cache.unsaved or plain[-1]
            self._save_replicates(folder)
        else:
            drop_replicates(folder)

    def _save_replicates(self, folder: str | os.PathLike[str]) -> tuple[int, int] | None:
        """Writes replicates that are not on disk; returns how many, and the bytes they take.

        Rows that effects are averaged over by default go with them.
        """
        key = self._cache.unsaved
        if key is None:
            return None
        found, _ = self._cache.replicates[key]
        about: dict[str, Any] = {"fit": self._fingerprint(), "key": key, "doubt": found.doubt}
        about["rivals"] = [rival.to_dict() for rival in found.rivals]
        about["without"] = [[one.cells, one.column] for one in found.without]
        beside = found.tensors()
        if self._rows_matter and self._table is not None and key.endswith(self._table.digest):
            values, observed = self._cache.kept_rows = self._table.values, self._table.observed
            beside |= {"rows.values": values, "rows.observed": observed}
        size = save_replicates(folder, self.model_, found.models, about, beside)
        self._cache.unsaved = None
        return len(found), size

    def _fingerprint(self) -> str:
        """By which replicates know their fit: what was fitted, and how it was replicated."""
        return fingerprint(self.model_, {"settings": self.settings_.to_dict(), "seed": self.seed})

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Reads a model that `save` wrote; an altered, foreign or older file is refused.

        Arguments:
            folder: What `save` wrote.

        Returns:
            The model, which answers as the one that was saved.

        Example:
            With `df` and `model` of `MissCNF`:

            >>> import tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     model.save(folder)
            ...     again = type(model).load(folder)
            >>> str(again.forms_["y"])
            'line'
        """
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
            if "rows.values" in beside and said["key"].endswith(str(self._digest)):
                values, observed = (beside.pop(f"rows.{what}") for what in ("values", "observed"))
                self._cache.kept_rows = values.clone(), observed
            structure = Structure.of(self.graph_, self.schema_.domains, self.model_.keys)
            line = structure.build(Shape(hidden=())).double()
            rivals = [SolvedRival.from_dict(entry, self.model_) for entry in said["rivals"]]
            without = [Without(cells, name, self.model_) for cells, name in said["without"]]
            given = (line, self.settings_.replicates, said["doubt"], rivals, without)
            self._keep(said["key"], Replicates.restored(models, beside, *given))
        return self

    @classmethod
    def _restored(cls, model: StructuralModel, about: Mapping[str, Any]) -> Self:
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
        panel = about.get("panel")
        if panel is not None:
            self.panel_ = Panel.from_dict(panel)
            vars(self).update(id=self.panel_.id, time=self.panel_.time)
        self.graph_, self.settings_ = model.graph, settings
        self.schema_, self.kinds_ = schema, schema.describe()
        self.model_ = model.eval().requires_grad_(requires_grad=False)
        self._table, self._cache = None, Cache(Asked(self.model_))
        self._digest, self._stands_for = about.get("table"), about.get("stands for")
        self._drawn_from, self._marks = about.get("drawn from"), tuple(about.get("marks", ()))
        self.forms_ = {name: Form.from_dict(entry) for name, entry in about["forms"].items()}
        self.comparison_, self.timings_ = about["comparison"], dict(about.get("timings", {}))
        self.denied_ = tuple(from_dict(Contradiction, line) for line in about.get("denied", ()))
        self.rough_, named = dict(about.get("rough", {})), about.get("rivals", {})
        for name in self.rough_:  # what a question would say of it can be said
            rough_sentence(model.graph.nodes[model.graph.index(name)], self.rough_[name])
        self.rivals_ = {name: from_dict(Rival, entry) for name, entry in named.items()}
        self.unlikely_ = tuple(from_dict(Unlikely, one) for one in about.get("unlikely", ()))
        self.loss_starts_ = pd.DataFrame(about.get("loss starts", []))
        self.loss_evidence_ = from_dict(LossEvidence, about.get("loss evidence", {}))
        self.history_ = pd.DataFrame(about["history"])
        self._note_columns(about["columns"])
        card(repr(self), facts(self), {"": self.kinds_})  # what it says of itself can be shown
        return self

    def __str__(self) -> str:
        """What print shows: a fitted model's card; scikit-learn's text before."""
        if not hasattr(self, "model_"):
            return repr(self)
        graph, forms = self.graph_, Counter(str(form) for form in self.forms_.values())
        hidden = f" and {len(graph.latent)} hidden causes" if graph.latent else ""
        count = len(graph) - len(graph.latent)
        head = f"MissCNF, fitted: {count} columns{hidden}, {len(graph.edges)} arrows"
        known = {name: value for name, value in facts(self).items() if name != "graph"}
        known["forms"] = ", ".join(f"{count} {form}" for form, count in forms.most_common())
        wide = max(map(len, known))
        lines = [f"  {name:{wide}}  {value}" for name, value in known.items()]
        kinds = self.kinds_[["column", "kind", "levels", "holes"]].to_string(index=False)
        more = "summary() has the coefficients, effect(…) the answers"
        return "\n".join([head, *lines, *(f"  {line}" for line in kinds.splitlines()), more])


def facts(model: FittedFlow) -> dict[str, object]:
    """Returns what is to be known of a fitted model at a glance."""
    found: dict[str, object] = {"graph": repr(model.graph_)}
    if model.graph_.auxiliary:
        found["auxiliary"] = ", ".join(model.graph_.auxiliary)
    if model._table is not None:
        columns = [j for j in range(len(model.graph_)) if j not in model.graph_.latent_nodes]
        shown = float(model._table.observed[:, columns].double().mean())
        rows = model._stands_for or len(model._table)
        found["rows"] = f"{rows}, {100 * (1 - shown):.1f} % of their cells missing"
    found["mechanisms"] = f"{model.chosen_} (preset {model.settings_.preset!r})"
    if model.comparison_ is not None:
        more, error = model.comparison_["elpd_difference"], model.comparison_["standard_error"]
        found["elpd difference from lines"] = f"{more:.4f} ± {error:.4f} nats a row"
    return found
