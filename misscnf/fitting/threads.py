r"""One thread for training: its steps are too small to share.

A step of 512 rows through layers of 64 takes microseconds a matrix. Threads that meet after each
of them gain next to nothing on an idle machine (NHEFS: 85 s with two, 89 s with one), and on a
busy one they wait for each other's turn: the same work took more than ten minutes beside two other
processes. The same holds for the vectors of scipy's searches, whose BLAS has threads of its own;
waiting they spin, and cost 40 % of a fit's processor time. With one thread, the same seed also
gives the same bits however many cores there are.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from threadpoolctl import threadpool_limits

__all__ = ["one_thread"]


@dataclass
class _Inside:
    """How many blocks run at the moment, and what the last of them restores."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    blocks: int = 0
    threads: int = 1
    blas: threadpool_limits | None = None


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
