"""Errors that teach: one sentence that says what, where, what was expected and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["InputError", "FitError", "ModelFileError", "naming", "solvable"]


class InputError(ValueError):
    """Something the user gave cannot be used as it is: a table, a graph, a query.

    Arguments:
        sentence: What, where, what was expected and what to do.
        about: What the sentence names already, such as a file or an option; None where it is for
            the caller to say what it is about (`naming`).

    Example:
        >>> from misscnf import CausalGraph
        >>> try:
        ...     CausalGraph.read("dose -> days; days -> dose")
        ... except InputError as error:
        ...     what, do = str(error).split("; ")
        >>> what
        'the graph has the cycle dose → days → dose, and a causal graph has none'
        >>> do
        'remove or turn round one of these edges.'
    """

    def __init__(self, sentence: str = "", about: str | None = None) -> None:
        super().__init__(sentence)
        self.about = about


class FitError(InputError):
    """A fit cannot go on with these rows: their likelihood has nothing finite to follow."""


class ModelFileError(InputError):
    """A saved model is incomplete, altered, or not one of ours.

    Arguments:
        sentence: What, where, what was expected and what to do.
        about: What the sentence names already.

    Example:
        >>> import tempfile
        >>> from misscnf import MissCNF
        >>> try:
        ...     MissCNF.load(tempfile.gettempdir())
        ... except ModelFileError as error:
        ...     print(str(error).partition("; ")[2])
        save the model again, or name another folder.
    """

    def __init__(self, sentence: str = "", about: str | None = "a model file") -> None:
        super().__init__(sentence, about)


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Puts a name before the sentence of an error that does not say yet what it is about."""
    try:
        yield
    except InputError as error:
        if error.about is not None:
            raise
        raise InputError(f"{what}: {error}", about=what) from error


@contextmanager
def solvable() -> Iterator[None]:
    """Says in words that a system of equations cannot be solved, as torch and numpy do not."""
    try:
        yield
    except (ValueError, RuntimeError) as error:
        if not type(error).__name__.endswith("LinAlgError"):
            raise
        raise FitError(
            "the equations of the fit have no solution: look for columns that others determine, "
            "such as copies and sums, and for columns that too few rows show together; take them "
            "out of the graph."
        ) from error
