"""The study of the paper: worlds with known answers, ways of losing values, and what follows."""

__all__: list[str] = []
