"""Errors that teach: one sentence that says what, where, what was expected and what to do."""

__all__ = ["InputError", "FitError", "ModelFileError"]


class InputError(ValueError):
    """Something the user gave cannot be used as it is: a table, a graph, a query."""


class FitError(InputError):
    """A fit cannot go on with these rows: their likelihood has nothing finite to follow."""


class ModelFileError(InputError):
    """A saved model is incomplete, altered, or not one of ours."""
