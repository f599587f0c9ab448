"""A sentence says once what it is about."""

import pytest

from misscnf.errors import InputError, ModelFileError, naming


def test_a_name_is_put_before_a_sentence_that_has_none():
    with (
        pytest.raises(InputError, match=r"^--graph: it has a cycle\.$") as found,
        naming("--graph"),
    ):
        raise InputError("it has a cycle.")
    assert found.value.about == "--graph"


def test_the_innermost_name_stands():
    with (
        pytest.raises(InputError, match=r"^g\.dot: no$"),
        naming("'data.csv'"),
        naming("g.dot"),
    ):
        raise InputError("no")


@pytest.mark.parametrize("error", [InputError("'m' is no", about="'m'"), ModelFileError("'m' no")])
def test_a_sentence_with_a_name_is_left_as_it_is(error):
    with pytest.raises(InputError) as found, naming("--out"):
        raise error
    assert found.value is error
