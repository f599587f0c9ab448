r"""One thread for training: its steps are too small to share.

A step of 512 rows through layers of 64 takes microseconds a matrix. Threads that meet after each
of them gain next to nothing on an idle machine (NHEFS: 85 s with two, 89 s with one), and on a
busy one they wait for each other's turn: the same work took more than ten minutes beside two other
processes. The same holds for the vectors of scipy's searches, whose BLAS has threads of its own;
waiting they spin, and cost 40 % of a fit's processor time. With one thread, the same seed also
gives the same bits however many cores there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

__all__ = ["one_thread"]


@contextmanager
def one_thread() -> Iterator[None]:
    """Lets torch and BLAS use one thread inside the block, and as many as before after it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)
