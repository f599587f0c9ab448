"""Errors that teach: one sentence that says what, where, what was expected and what to do."""

__all__ = ["InputError", "ModelFileError"]


class InputError(ValueError):
    """Something the user gave cannot be used as it is: a table, a graph, a query."""


class ModelFileError(InputError):
    """A saved model is incomplete, altered, or not one of ours."""
