"""Where the time of a fit goes: seconds by stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Timings"]


class Timings(dict[str, float]):
    """Seconds by stage, in the order in which stages began; a stage may be entered again."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Counts the time of a `with` block."""
        start = time.monotonic()
        self.setdefault(name, 0.0)
        try:
            yield
        finally:
            self[name] += time.monotonic() - start
