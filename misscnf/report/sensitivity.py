r"""If the loss is worse than it looks: the answer of the page along what no row can tell.

The section is open where somebody asked, and folded where nobody did: it then says how to ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from misscnf.data.table import IncompleteTable
from misscnf.display.style import STYLE
from misscnf.errors import InputError
from misscnf.estimators.fitted import FittedFlow
from misscnf.queries.effects import Effect
from misscnf.queries.tipping import Sensitivity
from misscnf.report.pictures import Image, image, new_figure
from misscnf.report.words import minus

__all__ = ["Section", "ask_sensitivity", "how_to_ask"]


@dataclass(frozen=True)
class Section:
    """What the page shows of a sensitivity analysis."""

    found: Sensitivity
    picture: Image
    heads: list[str]
    lines: list[list[str]]

    @property
    def assumed(self) -> str:
        """What is varied, in words."""
        if self.found.what == "strength":
            return (
                f"Each point takes as given how strongly {self.found.loss} drives its own loss: "
                f"the log-odds of being lost that one standard deviation of it adds. All else is "
                f"fitted anew. At 0 values are lost at random given the rest."
            )
        how = "plus a shift" if self.found.what == "shift" else "times a ratio"
        return (
            f"Each point takes {self.found.lost} to be what the model says, {how}. Values that "
            f"were seen stay as they are."
        )


def ask_sensitivity(
    model: FittedFlow,
    table: IncompleteTable,
    effect: Effect,
    asked: Mapping[str, Any],
    how: Mapping[str, Any],
) -> Section:
    """Asks the question of the page along strengths, shifts or ratios.

    Arguments:
        model: The fitted model.
        table: Its table.
        effect: The answer that opens the page.
        asked: Such as `{"shift": {"do": [0, 1, 2]}}`; as in `MissCNF.sensitivity`.
        how: Level, replicates, draws and seed of the page.
    """
    if "reference" in asked:  # the page compares the higher level with the lower, whatever it is
        raise InputError(
            "the page has no regimes of those who left; ask model.sensitivity(…, reference=…), "
            "where you say which arm is the reference."
        )
    found = model.sensitivity(
        effect.outcome,
        effect.do,
        effect.versus or None,
        **{"event": effect.event, **how, **asked},
        data=table,
    )
    assert isinstance(found, Sensitivity)
    with new_figure(STYLE.wide, 2.75) as figure:
        found.plot(figure.subplots())
        drawn = image(figure, f"Sensitivity. {found.told}")
    frame = found.to_frame().dropna(axis=1, how="all")
    lines = [[minus(f"{cell:.3g}") for cell in line] for line in frame.to_numpy()]
    return Section(found, drawn, [name.replace("_", ", ") for name in frame.columns], lines)


def how_to_ask(table: IncompleteTable, effect: Effect) -> str | None:
    """Returns the call that would ask it, as text; None where no value of the outcome is lost."""
    lost = not bool(table.observed[:, table.nodes.index(effect.outcome)].all())
    if not lost:
        return None
    levels = effect.event is not None
    asked = "ratio={'do': [1, 2, 4]}" if levels else "strength=[-1, -0.5, 0, 0.5, 1]"
    return f"model.sensitivity({effect.outcome!r}, {effect.do!r}, {effect.versus!r}, {asked})"
