r"""Where trials run: workers of joblib on this machine (loky), or on a cluster (dask, ray).

A task is handed out alone and its result handed back as soon as it is there. A worker that dies
takes its task's result with it, and joblib cannot say whose it was: `lost_workers` are the errors
that tell, and `run_alone` tries again in a process of its own.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

import joblib
from joblib.externals.loky import get_reusable_executor

from misscnf import InputError

__all__ = ["BACKENDS", "run_parallel", "run_alone", "lost_workers"]

BACKENDS = ("loky", "dask", "ray")
"""This machine, a dask cluster, a ray cluster."""

T = TypeVar("T")


def run_parallel(
    call: Callable[..., T],
    arguments: Iterable[tuple[Any, ...]],
    *,
    jobs: int,
    backend: str = "loky",
    cluster: str | None = None,
) -> Iterator[T]:
    """Calls a function for each tuple of arguments, and yields results in the order they come.

    Arguments:
        call: The function; importable, so that other processes find it.
        arguments: What it is called with.
        jobs: Calls at a time; −1 for as many as there are workers.
        backend: One of `BACKENDS`.
        cluster: The address of a cluster; one on this machine if None.
    """
    with _workers(backend, jobs, cluster):
        parallel = joblib.Parallel(batch_size=1, return_as="generator_unordered")
        yield from parallel(joblib.delayed(call)(*given) for given in arguments)


def lost_workers() -> tuple[type[Exception], ...]:
    """Returns the errors by which a backend says that a worker died."""
    distributed = sys.modules.get("distributed")
    return (BrokenProcessPool, *([] if distributed is None else [distributed.KilledWorker]))


def run_alone(call: Callable[..., T], *arguments: Any) -> T:  # noqa: ANN401 - as it takes them
    """Calls a function in a process of its own.

    Raises:
        BrokenProcessPool: If the process dies.
    """
    executor = get_reusable_executor(max_workers=1, kill_workers=True)
    return executor.submit(call, *arguments).result()


@contextlib.contextmanager
def _workers(backend: str, jobs: int, cluster: str | None) -> Iterator[None]:
    """Makes joblib run on a backend."""
    if backend == "loky":
        with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
            yield
    elif backend == "dask":
        with _dask_client(jobs, cluster), joblib.parallel_config("dask", n_jobs=-1):
            yield
    elif backend == "ray":
        _start_ray(jobs, cluster)
        with joblib.parallel_config("ray", n_jobs=jobs):
            yield
    else:
        raise InputError(f"--backend: there is no {backend!r}; there are {', '.join(BACKENDS)}.")


def _dask_client(jobs: int, cluster: str | None) -> contextlib.AbstractContextManager[Any]:
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError(
            "--backend dask needs the package distributed; pip install 'misscnf-study[dask]'."
        ) from error
    if cluster is not None:
        try:
            return Client(cluster, timeout="10s")
        except (OSError, ValueError, TypeError) as error:
            raise InputError(f"--cluster: no dask scheduler answers at {cluster!r}.") from error
    workers = None if jobs < 1 else jobs
    return Client(n_workers=workers, threads_per_worker=1, dashboard_address=None)


def _start_ray(jobs: int, cluster: str | None) -> None:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise InputError("--backend ray needs the package ray; pip install ray.") from error
    ray.init(
        address=cluster,
        num_cpus=jobs if cluster is None and jobs > 0 else None,
        ignore_reinit_error=True,
    )
    register_ray()
