"""Settings by name: changing, flattening, saving and reading nested dataclasses."""

import json
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pytest

from misscnf import Settings
from misscnf.errors import InputError
from misscnf.options import change, flatten, from_dict, to_dict


@dataclass(frozen=True)
class Training:
    epochs: int = 100
    rate: float = 1e-3
    hidden: tuple[int, ...] = (32, 32)
    seed: int | None = None


@dataclass(frozen=True)
class Selection:
    z: float = 1.5
    folds: int = 5
    ends: tuple[float, float] = (0.25, 0.75)
    way: Literal["held out", "evidence"] = "held out"

    def __post_init__(self):
        low, high = self.ends
        if not 0 <= low < high <= 1:
            raise InputError(f"ends are two shares, the lower first; got {self.ends}.")


@dataclass(frozen=True)
class Inner:
    training: Training = field(default_factory=Training)
    folds: int = 2


@dataclass(frozen=True)
class Options:
    name: str = "auto"
    train: bool = True
    training: Training = field(default_factory=Training)
    selection: Selection = field(default_factory=Selection)


@pytest.mark.parametrize("name", ["selection.z", "z"])
def test_a_value_is_changed_by_its_dotted_or_its_last_name(name):
    assert change(Options(), {name: 2.0}) == Options(selection=Selection(z=2.0))


def test_the_original_stays_and_no_change_is_the_same():
    options = Options()
    change(options, {"epochs": 1})
    assert options == Options()
    assert change(options, {}) is options


def test_several_changes_are_applied_at_once():
    # One after the other, the first would leave the ends (0.9, 0.75), which the class refuses.
    changed = change(Options(), {"selection.ends": [0.9, 0.95], "training.epochs": 3})
    assert changed.selection.ends == (0.9, 0.95)
    assert changed.training.epochs == 3


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("rate", 1, 1.0),
        ("epochs", np.int64(3), 3),
        ("rate", np.float32(0.5), 0.5),
        ("hidden", [64, 64, 64], (64, 64, 64)),
        ("hidden", (), ()),
        ("seed", 4, 4),
        ("seed", None, None),
        ("way", "evidence", "evidence"),
        ("train", False, False),
    ],
)
def test_a_value_becomes_what_its_annotation_says(name, value, kept):
    found = next(v for key, v in flatten(change(Options(), {name: value})).items() if name in key)
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("epochs", 2.5, "a whole number"),
        ("epochs", True, "a whole number"),
        ("epochs", "3", "a whole number"),
        ("rate", None, "a number"),
        ("hidden", 32, "a tuple, each of it a whole number"),
        ("hidden", (32, 1.5), "a tuple, each of it a whole number"),
        ("hidden", "32", "a tuple, each of it a whole number"),
        ("ends", (0.1, 0.2, 0.3), "a tuple of 2: a number, a number"),
        ("seed", "x", "a whole number or None"),
        ("way", "luck", "one of 'held out', 'evidence'"),
        ("train", 1, "True or False"),
        ("name", 1, "a text"),
        ("selection", 3, "a Selection"),
    ],
)
def test_a_wrong_type_is_refused_with_what_was_expected(name, value, expected):
    with pytest.raises(InputError, match=f"{name}' is ") as refused:
        change(Options(), {name: value})
    assert expected in str(refused.value)
    assert repr(value) in str(refused.value)


def test_one_value_for_a_group_is_refused_with_the_setting_that_may_be_meant():
    with pytest.raises(InputError, match=r"'curves' is a group.*mean 'selection\.curves'\?"):
        change(Settings(), {"curves": False})  # as 0.1.0 had it
    with pytest.raises(InputError, match=r"'training' is a group.*mean 'training\.epochs'\?"):
        change(Settings(), {"training": 3})


def test_what_a_class_refuses_is_refused():
    with pytest.raises(InputError, match="the lower first"):
        change(Options(), {"ends": (0.5, 0.2)})


@pytest.mark.parametrize("name", ["selection.folks", "fold", "epoch", "trainin.epochs"])
def test_an_unknown_name_is_refused_with_the_nearest(name):
    nearest = "selection.folds" if "fol" in name else "training.epochs"
    with pytest.raises(InputError, match=rf"no setting '{name}'; the nearest are .*{nearest}"):
        change(Options(), {name: 1})


def test_a_name_like_no_other_is_refused_with_all():
    with pytest.raises(InputError, match=r"no setting 'qqqqqq'; there are name, train, training"):
        change(Options(), {"qqqqqq": 1})


def test_a_last_name_of_two_groups_is_refused_with_both():
    @dataclass(frozen=True)
    class Two:
        first: Training = Training()
        second: Training = Training()

    with pytest.raises(InputError, match=r"more than one .* first\.epochs, second\.epochs"):
        change(Two(), {"epochs": 1})


def test_a_name_that_is_given_twice_is_refused():
    for changes in ({"epochs": 1, "training.epochs": 2}, {"training": Training(), "epochs": 1}):
        with pytest.raises(InputError, match="given twice"):
            change(Options(), changes)


def test_a_group_takes_an_instance_or_a_mapping_of_its_names():
    other = Training(epochs=1)
    assert change(Options(), {"training": other}).training is other
    start = change(Options(), {"training.rate": 0.5})
    assert change(start, {"training": {"epochs": 1}}).training == replace(other, rate=0.5)


def test_names_go_as_deep_as_the_groups():
    changed = change(Inner(), {"training.epochs": 7, "folds": 3})
    assert flatten(changed) == {
        "training.epochs": 7,
        "training.rate": 1e-3,
        "training.hidden": (32, 32),
        "training.seed": None,
        "folds": 3,
    }


def test_settings_survive_json():
    options = change(Options(), {"hidden": (8,), "seed": 3, "ends": (0.1, 0.9), "way": "evidence"})
    text = json.dumps(to_dict(options))
    assert from_dict(Options, json.loads(text)) == options


def test_what_is_not_saved_has_its_default_and_what_is_unknown_is_refused():
    assert from_dict(Options, {"selection": {"z": 3}}) == Options(selection=Selection(z=3.0))
    with pytest.raises(InputError, match=r"no setting 'selection\.zz'.*selection\.z"):
        from_dict(Options, {"selection": {"zz": 3}})
    with pytest.raises(InputError, match=r"'training\.epochs' is a whole number; got 1\.5"):
        from_dict(Options, {"training": {"epochs": 1.5}})


def test_a_field_without_default_must_be_there():
    @dataclass(frozen=True)
    class Needy:
        rows: int

    with pytest.raises(InputError, match=r"not all settings of Needy .*expected rows"):
        from_dict(Needy, {})
