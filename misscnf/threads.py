r"""All cores for passes over rows, one thread for small steps.

A pass over a table is a sum, or a concatenation, over parts of its rows:

    F(rows) = F(part 1) ⊕ F(part 2) ⊕ …

Parts of some thousand rows are worked on side by side, a thread each: torch lets go of Python's
lock inside its kernels. Every part has a generator of its own (`spawn`), how rows are parted
depends on their number alone, and results are put together in their order. So the same seed gives
the same bits, whatever the number of threads; a table of one part has none to wait for. How many
threads there may be, torch.set_num_threads or the variable OMP_NUM_THREADS says.

Inside a part, in training, in checks and in questions, torch and BLAS have one thread each. A step
of 512 rows through layers of 64 takes microseconds a matrix. Threads that meet after each of them
gain next to nothing on an idle machine (NHEFS: 85 s with two, 89 s with one), and on a busy one
they wait for each other's turn: the same work took more than ten minutes beside two other
processes, the sweeps of an interval 9.7 s of processor time with two threads for 0.6 s with one,
and the tests of independences of a graph of 107 nodes 17 s for 0.8. The same holds for the vectors
of scipy's searches, whose BLAS has threads of its own; waiting they spin, and cost 40 % of a fit's
processor time.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from threadpoolctl import threadpool_limits
from torch import Generator, Tensor

__all__ = ["in_order", "one_thread", "row_parts", "side_by_side", "spawn"]

Part = TypeVar("Part")
Found = TypeVar("Found")


@dataclass
class _Inside:
    """How many blocks run at the moment, and what the last of them restores."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    blocks: int = 0
    threads: int = 1
    blas: threadpool_limits | None = None
    worker: threading.local = field(default_factory=threading.local)
    """Who works on a part does not part it again."""


_INSIDE = _Inside()  # the number of threads is one for the whole process


@contextmanager
def one_thread() -> Iterator[None]:
    """Lets torch and BLAS use one thread inside the block, and as many as before after it.

    Where several blocks overlap, the last that ends restores what the first has found.
    """
    with _INSIDE.lock:
        if not _INSIDE.blocks:
            _INSIDE.threads = torch.get_num_threads()
            torch.set_num_threads(1)
            _INSIDE.blas = threadpool_limits(1, user_api="blas")
        _INSIDE.blocks += 1
    try:
        yield
    finally:
        with _INSIDE.lock:
            _INSIDE.blocks -= 1
            if not _INSIDE.blocks and _INSIDE.blas is not None:
                _INSIDE.blas.restore_original_limits()
                torch.set_num_threads(_INSIDE.threads)


def row_parts(rows: int, most: int) -> list[Tensor]:
    """Returns the numbers of the rows of each part: as few parts of about one size as may be."""
    return list(torch.arange(rows).tensor_split(max(1, math.ceil(rows / most))))


def spawn(generator: Generator, count: int) -> list[Generator]:
    """Returns a generator for each of some parts; a single part goes on with the one there is."""
    if count == 1:
        return [generator]
    seeds = torch.randint(2**62, (count,), generator=generator, device=generator.device).tolist()
    return [Generator(device=generator.device).manual_seed(seed) for seed in seeds]


def side_by_side(work: Callable[[Part], Found], parts: Sequence[Part]) -> list[Found]:
    """Returns what the work on each part finds, in their order; parts run on all cores.

    Arguments:
        work: What is done with a part. It may write to memory that belongs to its part alone.
        parts: Independent parts.
    """
    return list(in_order(work, parts, most=len(parts)))


def in_order(
    work: Callable[[Part], Found], parts: Iterable[Part], most: int | None = None
) -> Iterator[Found]:
    """Yields what the work on each part finds, in their order, as parts come.

    No more of them are there at a time than there are threads, and one that waits: parts that are
    read from disk never fill memory.

    Arguments:
        work: As in `side_by_side`.
        parts: Independent parts; taken one after the other, in this thread.
        most: Threads, at most.
    """
    if (most is not None and most < 2) or getattr(_INSIDE.worker, "busy", False):
        yield from map(work, parts)
        return
    gradients = torch.is_grad_enabled()  # of this thread: the workers have to be told

    def run(part: Part) -> Found:
        _INSIDE.worker.busy = True
        with torch.set_grad_enabled(gradients):
            return work(part)

    with one_thread():
        threads = _INSIDE.threads if most is None else min(_INSIDE.threads, most)
        if threads < 2:
            yield from map(work, parts)
            return
        with ThreadPoolExecutor(threads) as pool:
            waiting = deque[Future[Found]]()
            for part in parts:
                waiting.append(pool.submit(run, part))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
