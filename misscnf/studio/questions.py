r"""A question of the page, and the call of the public face that answers it.

    Question.read(given)       from JSON: texts, as they were typed
    question.call(model)       the method, with values as the columns of the model have them
    python(call), shell(…)     the same as code (`recipe`)

A text that is a level of its column is that level, a number is a number, and anything else is a
rule such as "min(dose, 2)". The numbers of a curve are made as the command line makes them. Over
time an intervention on a column is a regime: the same at every visit.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from misscnf.errors import InputError

if TYPE_CHECKING:
    from misscnf import MissCNF

__all__ = ["Question", "Call"]


@dataclass(frozen=True)
class Call:
    """A method of a fitted model with its arguments, all but the table."""

    method: str
    arguments: dict[str, Any]
    rows: int | None = None
    """The number of the row that is asked about, from 1; None where it is no row."""


@dataclass(frozen=True)
class Question:
    """What is asked.

    An effect, a curve along a column, how an effect holds if a loss is worse than it looks, the
    risk of an event over time, or what a row hides or would have been.
    """

    kind: str = "effect"
    on: str = ""
    do: dict[str, str] = field(default_factory=dict)
    versus: dict[str, str] = field(default_factory=dict)
    where: str = ""
    by: str = ""
    event: str = ""
    statistic: str = "mean"
    treated: bool = False
    population: str = ""
    interval: float | None = 0.95
    seed: int = 0
    along: str = ""
    low: float = 0.0
    high: float = 1.0
    step: float = 1.0
    what: str = "shift"
    """Along what a sensitivity goes: strength, shift or ratio, from low to high."""
    arm: str = ""
    """In which arm a shift or a ratio is; empty for both."""
    loss: str = ""
    """The column whose loss is asked about; empty for the outcome."""
    competing: str = "total"
    row: int = 1
    draws: int = 20

    @classmethod
    def read(cls, given: object) -> Question:
        """Reads what a page has sent.

        Raises:
            InputError: If it is no question.
        """
        if not isinstance(given, dict):
            raise InputError("a question: expected an object of JSON.")
        blank = cls()
        for name, value in given.items():
            if name not in cls.__dataclass_fields__:
                raise InputError(f"a question has no part {str(name)[:40]!r}; reload the page.")
            _check(name, value, getattr(blank, name))
        asked = cls(**given)
        for part, known in _choices().items():
            if getattr(asked, part) not in known:
                one_of = ", ".join(repr(name) for name in known)
                raise InputError(
                    f"the part {part!r} of a question is one of {one_of}, not "
                    f"{getattr(asked, part)[:40]!r}."
                )
        if asked.interval is not None and not 0.0 < asked.interval < 1.0:
            raise InputError("the level of an interval is between 0 and 1, such as 0.95.")
        if not 1 <= asked.draws <= 10_000:
            raise InputError("draws of a row are between 1 and 10,000.")
        return asked

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        return asdict(self)

    @property
    def grid(self) -> list[float]:
        """The values of a curve."""
        steps = (self.high - self.low) / self.step if self.step > 0 else math.inf
        if not 0 <= steps < 1000:
            raise InputError("a curve goes from low to high in steps above 0, 1000 at most.")
        count = math.floor(steps + 1e-9) + 1
        return [float(f"{self.low + i * self.step:.12g}") for i in range(count)]

    def call(self, model: MissCNF) -> Call:
        """Returns the call that answers it."""
        if self.kind == "risk":
            return self._of_risk()
        do = {name: _value(model, name, text) for name, text in self.do.items()}
        if self.kind == "row":
            more = {"do": do} if do else {}
            return Call(
                "counterfactual" if do else "impute", more | self._said("draws", "seed"), self.row
            )
        versus = {name: _value(model, name, text) for name, text in self.versus.items()}
        given = {"versus": versus or None, **self._said("where", "interval", "population", "seed")}
        if self.statistic != "mean":
            given["statistic"] = _statistic(self.statistic)
        if self.event:
            given["event"] = _value(model, self.on, self.event)
        if self.kind == "sensitivity":
            return self._if_worse(do, given)
        if self.kind == "curve":
            values = self.grid
            given = {
                "outcome": self.on,
                "along": self.along,
                "values": values,
                "do": do or None,
            } | given
            return Call("curve", {name: of for name, of in given.items() if of is not None})
        given = {"outcome": self.on, "do": do or None} | given | self._said("by", "treated")
        return Call("effect", {name: of for name, of in given.items() if of is not None})

    def _if_worse(self, do: dict[str, Any], given: dict[str, Any]) -> Call:
        """Returns the call of an effect along what cannot be known of a loss."""
        points: Any = self.grid
        if self.what != "strength" and self.arm:
            points = {self.arm: points}
        said = {"outcome": self.on, "do": do, **given, "loss": self.loss or None}
        said = {name: of for name, of in said.items() if of is not None}
        # Without its name there would be an interval: that is what it does by itself.
        return Call("sensitivity", {**said, self.what: points, "interval": self.interval})

    def _of_risk(self) -> Call:
        """Returns the call of a risk over time: a regime beside another, or the natural course."""
        do, versus = ({n: _regime(t) for n, t in arm.items()} for arm in (self.do, self.versus))
        said = {"event": self.on, "do": do, "versus": versus if do or versus else None}
        said |= self._said("where", "interval", "seed")
        if self.competing != "total":
            said["competing"] = self.competing
        return Call("risk", {name: of for name, of in said.items() if of is not None})

    def _said(self, *names: str) -> dict[str, Any]:
        """Returns the parts that were filled in."""
        said = {name: getattr(self, name) for name in names}
        return {name: value for name, value in said.items() if not _is_blank(value)}


def _is_blank(value: object) -> bool:
    return value is None or value is False or value == ""


def _check(name: str, value: object, blank: object) -> None:
    """Refuses a part of another type than it has when it is not filled in."""
    if name == "interval":
        good = value is None or (isinstance(value, int | float) and not isinstance(value, bool))
    elif isinstance(blank, dict):
        good = isinstance(value, dict) and all(
            isinstance(one, str) for pair in value.items() for one in pair
        )
    elif isinstance(blank, float):
        good = (
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        )
    else:
        good = type(value) is type(blank)
    if not good:
        raise InputError(f"the part {name!r} of a question cannot be {str(value)[:40]!r}.")


def _value(model: MissCNF, name: str, text: str) -> Any:  # noqa: ANN401 - a level has any type
    """Returns a text as a value of a column, or as it is: a rule."""
    text = text.strip()
    if not text:
        raise InputError(f"{name!r} has no value; give one, or take it out of the question.")
    if model.panel_ is not None and name not in model.graph_.nodes:
        return _regime(text)
    number = _number(text)
    column = model.schema_.columns[model.graph_.index(name)]
    for level in getattr(column, "levels", ()):
        same = isinstance(level, bool) and str(level).casefold() == text.casefold()
        if level == text or same or (number is not None and level == number):
            return level
    return text if number is None else number


def _regime(text: str) -> float | str:
    """Returns what is done at every visit: a number, or a rule."""
    number = _number(text)
    return text.strip() if number is None else number


def _choices() -> dict[str, tuple[str, ...]]:
    """The parts of a question that are one of few words."""
    return {
        "kind": ("effect", "curve", "sensitivity", "risk", "row"),
        "what": ("strength", "shift", "ratio"),
        "arm": ("", "do", "versus"),
        "competing": ("total", "removed"),
    }


def _statistic(text: str) -> str | float:
    number = _number(text)
    return text if number is None else number


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
