r"""Numbers that shape an answer, by name: nested frozen dataclasses, changed, saved and read back.

    change(settings, {"selection.z": 2.0, "epochs": 50})      a copy with other values
    flatten(settings)                                         {"selection.z": 1.5, …}
    from_dict(type(settings), to_dict(settings))              equal to settings

A name is dotted, group by group; its last part alone is enough where one group has it. A value is
held against the annotation of its field, so that a wrong one is refused where it was given and not
where it is used. What a field allows beyond its type, its class says in `__post_init__`.
"""

from __future__ import annotations

import dataclasses
import difflib
import numbers
import reprlib
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from misscnf.errors import InputError

__all__ = ["change", "flatten", "to_dict", "from_dict"]

T = TypeVar("T")

_WORDS = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    type(None): "None",
}


def change(settings: T, changes: Mapping[str, object]) -> T:
    """Returns a copy with some values changed, or refuses a name or a value with an `InputError`.

    A field may be a group, a dataclass in turn: it takes a mapping of its own names, or an
    instance.
    """
    names = dict(_walk(settings))
    given: dict[str, object] = {}
    for name, value in changes.items():
        full = _full_name(name, names)
        for other in given:
            if full == other or full.startswith(f"{other}.") or other.startswith(f"{full}."):
                raise InputError(f"the setting {full!r} is given twice; give it once.")
        if dataclasses.is_dataclass(group := names[full]):
            _check_group(full, group, value, names)
        given[full] = value
    return _changed(settings, given, "")


def flatten(settings: object) -> dict[str, object]:
    """Returns every value by its dotted name, in the order of the fields."""
    return {name: value for name, value in _walk(settings) if not dataclasses.is_dataclass(value)}


def to_dict(settings: object) -> dict[str, Any]:
    """Returns nested dictionaries of plain values, for JSON."""
    return {field: _plain(getattr(settings, field)) for field in _hints(type(settings))}


def from_dict(cls: type[T], data: Mapping[str, object], prefix: str = "") -> T:
    """Returns what `to_dict` was given; a field that is not there has its default.

    What does not fit is refused with an `InputError`, by its name after the prefix.
    """
    hints = _hints(cls)
    unknown = [name for name in data if name not in hints]
    if unknown:
        raise InputError(_no_such(f"{prefix}{unknown[0]}", [f"{prefix}{name}" for name in hints]))
    values = {name: _coerce(data[name], hints[name], f"{prefix}{name}") for name in data}
    try:
        return cls(**values)
    except TypeError as problem:
        raise InputError(
            f"these are not all settings of {cls.__name__} ({problem}); expected "
            f"{', '.join(hints)}."
        ) from problem


def _check_group(name: str, group: object, value: object, names: Mapping[str, object]) -> None:
    """Refuses a single value for a whole group, with the settings of that name elsewhere."""
    if isinstance(value, Mapping | type(group)):
        return
    values = [full for full, other in names.items() if not dataclasses.is_dataclass(other)]
    inside = next(full for full in values if full.startswith(f"{name}."))
    meant = next((full for full in values if full.endswith(f".{name}")), inside)
    raise InputError(
        f"the setting {name!r} is a group, {_expected(type(group))}; got {value!r} "
        f"(did you mean {meant!r}?)."
    )


def _changed(settings: T, given: Mapping[str, object], prefix: str) -> T:
    """Applies all changes of a group at once: what it allows may hang on several of them."""
    new: dict[str, object] = {}
    for field, hint in _hints(type(settings)).items():
        name, value = f"{prefix}{field}", getattr(settings, field)
        within = {key: v for key, v in given.items() if key.startswith(f"{name}.")}
        if name in given:
            asked = given[name]
            if dataclasses.is_dataclass(value) and isinstance(asked, Mapping):
                new[field] = change(value, asked)
            else:
                new[field] = _coerce(asked, hint, name)
        elif within:
            new[field] = _changed(value, within, f"{name}.")
    return dataclasses.replace(settings, **new) if new else settings  # type: ignore[type-var]


def _hints(cls: Any) -> dict[str, Any]:  # noqa: ANN401 - a class of fields
    """Returns the fields that `__init__` takes, with their annotations."""
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}


def _walk(settings: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yields groups and values by their dotted names."""
    for field in _hints(type(settings)):
        value = getattr(settings, field)
        yield f"{prefix}{field}", value
        if dataclasses.is_dataclass(value):
            yield from _walk(value, f"{prefix}{field}.")


def _full_name(name: str, names: Mapping[str, object]) -> str:
    if name in names:
        return name
    ending = [full for full in names if full.endswith(f".{name}")]
    if len(ending) > 1:
        raise InputError(
            f"there is more than one setting {name!r}; say which: {', '.join(ending)}."
        )
    if not ending:
        raise InputError(_no_such(name, list(names)))
    return ending[0]


def _no_such(name: str, names: Sequence[str]) -> str:
    """Returns the sentence on an unknown name, with those that look like it."""
    by_end: dict[str, list[str]] = {}
    for full in names:
        by_end.setdefault(full.rpartition(".")[2], []).append(full)
    close = difflib.get_close_matches(str(name), names)
    for end in difflib.get_close_matches(str(name).rpartition(".")[2], list(by_end)):
        close += [full for full in by_end[end] if full not in close]
    if close:
        return f"there is no setting {name!r}; the nearest are {', '.join(close[:4])}."
    return f"there is no setting {name!r}; there are {', '.join(names)}."


def _coerce(value: object, hint: Any, name: str) -> object:  # noqa: ANN401 - an annotation
    """Returns a value as its annotation has it, or refuses it by name."""
    found = _fit(value, hint, f"{name}.")
    if found is _Misfit:
        raise InputError(f"the setting {name!r} is {_expected(hint)}; got {reprlib.repr(value)}.")
    return found


class _Misfit:
    """What `_fit` returns where a value is not of a type."""


def _fit(value: Any, hint: Any, prefix: str = "") -> object:  # noqa: ANN401 - an annotation
    """Returns a value as a type has it, or `_Misfit`."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:  # True is not 1
        same = (part for part in parts if type(part) is type(value) and part == value)
        return next(same, _Misfit)
    if origin in (Union, types.UnionType):
        return next((fit for part in parts if (fit := _fit(value, part)) is not _Misfit), _Misfit)
    if origin is tuple:
        return _fit_tuple(value, parts)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        return from_dict(hint, value, prefix)
    if hint in (int, float):
        kind = numbers.Integral if hint is int else numbers.Real
        fits = isinstance(value, kind) and not isinstance(value, bool)
        try:
            return hint(value) if fits else _Misfit
        except OverflowError:  # an integer beyond float64
            return _Misfit
    return value if hint is Any or isinstance(value, origin or hint) else _Misfit


def _fit_tuple(value: object, parts: tuple[Any, ...]) -> object:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return _Misfit
    if len(parts) == 2 and parts[1] is Ellipsis:
        parts = (parts[0],) * len(value)
    fits = [_fit(one, part) for one, part in zip(value, parts, strict=False)]
    return _Misfit if len(parts) != len(value) or _Misfit in fits else tuple(fits)


def _expected(hint: Any) -> str:  # noqa: ANN401 - an annotation
    """Returns a type in words."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(map(repr, parts))
    if origin in (Union, types.UnionType):
        return " or ".join(_expected(part) for part in parts)
    if origin is tuple:
        if len(parts) == 2 and parts[1] is Ellipsis:
            return f"a tuple, each of it {_expected(parts[0])}"
        return f"a tuple of {len(parts)}: {', '.join(_expected(part) for part in parts)}"
    return _WORDS.get(hint, f"a {getattr(hint, '__name__', hint)}")


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever a field holds
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return value
