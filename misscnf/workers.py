r"""Work that is done by several processes, on one machine by joblib or on a cluster by dask.

    with workers(jobs=4):                      four processes of this machine (loky)
    with workers(cluster="tcp://head:8786"):   whoever works for this dask scheduler
        found = each(call, arguments)

Results come back in the order of the arguments, and what is asked for does not depend on who does
it: one worker and many give the same bits. A worker that dies takes the work that it had in hand
with it; this is handed out again, and done here if workers keep dying. A cluster that is left
without workers, or without its scheduler, is not asked again.

No launcher is needed. A pass over rows is a sum of parts that know nothing of each other, and
lanes of training (`fitting.train.lanes`) meet once in many steps: joblib deals them out on one
machine, and dask on several. `torchrun` would have to start the whole program once per worker, and
start all of them again when one dies. Replicates and strengths take less time than workers take to
start, and stay here (docs/many_rows.md).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

import joblib
from joblib.parallel import get_active_backend

from misscnf.errors import InputError

__all__ = ["each", "workers"]

logger = logging.getLogger("misscnf")

Found = TypeVar("Found")


@contextmanager
def workers(
    jobs: int | None = None, cluster: str | None = None, seconds: float = 10.0
) -> Iterator[None]:
    """Lets `each` use several processes inside the block.

    Arguments:
        jobs: Processes of this machine, −1 for one a core; None for this one alone, or for what
            `joblib.parallel_config` says.
        cluster: The address of a dask scheduler, instead.
        seconds: How long the scheduler is waited for, and then its first worker.
    """
    if cluster is not None:
        with _client(cluster, seconds), joblib.parallel_config("dask", n_jobs=-1):
            yield
    elif jobs is not None:
        if not isinstance(jobs, int) or jobs == 0 or jobs < -1:
            raise InputError(
                f"n_jobs is a number of processes, or -1 for all cores; got {jobs!r}."
            )
        with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
            yield
    else:
        yield


def each(
    call: Callable[..., Found],
    arguments: Sequence[tuple[Any, ...]],
    rounds: int = 3,
    tell: Callable[[int], object] | None = None,
) -> list[Found]:
    """Returns what a function finds for each tuple of arguments, in their order.

    Arguments:
        call: The function; importable, so that other processes find it.
        arguments: What it is called with.
        rounds: How often lost work is handed out, before it is done here.
        tell: Is told the number of each tuple whose result has come, in the order of coming.
    """
    found: dict[int, Found] = {}

    def keep(number: int, its: Found) -> None:
        found[number] = its
        if tell is not None:
            tell(number)

    for _ in range(rounds):
        left = [number for number in range(len(arguments)) if number not in found]
        if len(left) < 2 or _alone():
            break
        try:
            for number, its in _handed_out([(number, call, arguments[number]) for number in left]):
                keep(number, its)
        except _Deserted as error:
            logger.warning("%s: this process does the rest alone.", error)
            break
        except _lost() as error:
            lost = len(arguments) - len(found)
            logger.warning("A worker died (%s); %d parts start again.", type(error).__name__, lost)
    for number in range(len(arguments)):
        if number not in found:
            keep(number, call(*arguments[number]))
    return [found[number] for number in range(len(arguments))]


def _numbered(
    number: int, call: Callable[..., Found], arguments: tuple[Any, ...]
) -> tuple[int, Found]:
    return number, call(*arguments)


class _Deserted(Exception):
    """A cluster has no workers left, or no scheduler."""


def _alone() -> bool:
    """Says whether there is nobody to hand work to."""
    backend, jobs = get_active_backend()
    return jobs in (None, 1) or getattr(backend, "deserted", False)


def _handed_out(calls: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
    """Yields results as they come, each with its number."""
    backend, _ = get_active_backend()
    if not hasattr(backend, "client"):
        parallel = joblib.Parallel(batch_size=1, return_as="generator_unordered")
        yield from parallel(joblib.delayed(_numbered)(*given) for given in calls)
        return
    try:
        yield from _on_cluster(backend.client, calls)
    except _Deserted:
        backend.deserted = True  # for as long as `workers` lasts
        raise


def _on_cluster(
    client: Any,  # noqa: ANN401 - dask's, which need not be there
    calls: Sequence[tuple[Any, ...]],
    seconds: float = 30.0,
) -> Iterator[tuple[int, Any]]:
    """Yields results of a cluster. joblib would wait for ever, were there no worker any more.

    Raises:
        _Deserted: If there was none for so many seconds, or no scheduler answers.
    """
    with _in_one_word():
        waiting = {client.submit(_numbered, *given, pure=False) for given in calls}
    alone = 0.0
    while waiting:
        with _in_one_word():
            done, waiting = _some(waiting, seconds / 10)
            alone = 0.0 if done or client.ncores() else alone + seconds / 10
        if alone >= seconds:
            raise _Deserted(f"The cluster has had no worker for {seconds:g} s")
        for future in done:
            if future.status == "error":
                future.result()  # raises what the call did, or that workers died under it
            with _in_one_word():
                found = future.result(timeout=seconds)
            yield found


def _some(waiting: set[Any], seconds: float) -> tuple[set[Any], set[Any]]:
    """Returns what has been done by now, and what has not."""
    from distributed import wait

    try:
        done, left = wait(waiting, timeout=seconds, return_when="FIRST_COMPLETED")
    except TimeoutError:
        return set(), waiting
    return done, left


@contextmanager
def _in_one_word() -> Iterator[None]:
    """Says in one way that a scheduler is gone, or a result with its worker."""
    try:
        yield
    except (CancelledError, OSError, TimeoutError) as error:
        raise _Deserted("The cluster does not answer") from error


def _lost() -> tuple[type[Exception], ...]:
    """Returns the errors by which a backend says that a worker died."""
    distributed = sys.modules.get("distributed")
    return (BrokenProcessPool, *([] if distributed is None else [distributed.KilledWorker]))


@contextmanager
def _client(cluster: str, seconds: float) -> Iterator[None]:
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError(
            "a cluster needs the package distributed; install it with pip install distributed."
        ) from error
    try:
        client = Client(cluster, timeout=seconds)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"no dask scheduler answers at {cluster!r}; check its address."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=seconds)
        except TimeoutError as error:
            raise InputError(
                f"the dask scheduler at {cluster!r} has no workers; start some, such as by "
                f"`dask worker {cluster}`."
            ) from error
        yield
