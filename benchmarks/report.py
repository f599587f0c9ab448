"""How every benchmark ends: one JSON object on its last line, and exit 1 where a bar is missed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["finish", "fastest", "peak_memory"]


def finish(figures: dict[str, Any], bars: dict[str, bool]) -> NoReturn:
    """Prints what was missed, then the figures with `ok`, and leaves."""
    for name, met in bars.items():
        print(f"{'met   ' if met else 'MISSED'}  {name}")
    print(json.dumps({**figures, "bars": bars, "ok": all(bars.values())}))
    sys.exit(0 if all(bars.values()) else 1)


def fastest(work: Callable[[], object], repeats: int, warm_up: int = 1) -> float:
    """Returns the seconds of the fastest run: the least disturbed on a shared machine."""
    for _ in range(warm_up):
        work()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def peak_memory() -> float:
    """Returns the peak resident size of this process so far, in MB."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    raise RuntimeError("the peak resident size is read from /proc, which is not here")
