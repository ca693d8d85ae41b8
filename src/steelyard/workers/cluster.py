"""Tasks on a Dask cluster, which runs the tasks of a lost worker again by itself.

Whoever reaches a Dask scheduler can run code on its workers, so only addresses of this machine and encrypted ones are
used.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from .. import __version__
from ..errors import WorkerError
from .engines import NotBegunError, Run, Shared, TaskEngine, WorkerLostError, opened_here

_CONNECT, _WORKER = 5.0, 30.0
"""Seconds in which a scheduler must answer, and in which it must have a worker: those just started import first."""

_UNDER_WAY = 1000
"""Tasks that a cluster holds at the same time: all of a long study would fill its scheduler."""


class Cluster(TaskEngine):
    """A Dask cluster. Dask itself runs the tasks of a lost worker again."""

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError as error:
            raise WorkerError("a scheduler needs Dask; install it with: pip install 'steelyard[cluster]'") from error
        security = distributed.Security()
        _check_address(address, (security.tls_ca_file, security.tls_client_cert, security.tls_client_key))
        self._address, self._killed = address, distributed.KilledWorker
        self._id, self._told, self._sent, self._submitted = uuid.uuid4().hex, "", {}, 0
        self._log = logging.getLogger("distributed.client")
        self._level = self._log.level
        self._log.setLevel(logging.CRITICAL)  # a lost scheduler is an error of one line
        self._client: Any = None
        try:
            self._client = _connected(distributed, address, security)
            super().__init__(self._checked_workers(), _UNDER_WAY, 1)
        except WorkerError:
            self.close()
            raise

    def _checked_workers(self) -> int:
        """Return how many tasks the workers take; refuse a cluster without workers or with another version."""
        try:
            self._client.wait_for_workers(1, timeout=_WORKER)
            versions = set(self._client.run(_version_here).values())
        except TimeoutError as error:
            raise WorkerError(
                f"the scheduler at '{self._address}' has no workers; start some with: dask worker {self._address} "
                "--nthreads 1"
            ) from error
        except ModuleNotFoundError as error:
            raise WorkerError(f"a worker of '{self._address}' cannot import Steelyard ({error}); {_SAME}") from error
        if versions != {__version__}:
            raise WorkerError(_other_version(versions - {__version__}))
        return sum(self._client.nthreads().values())

    def submit(self, run: Run[Any, Any, Any], shared: Shared[Any], task: Any) -> Any:
        """Submit a task, after its shared data if they are new."""
        if shared.key not in self._sent:  # a task of its own: Dask makes it again where a lost worker held it
            self._sent = {shared.key: self._client.submit(_as_it_is, shared.data, pure=False)}
        data = self._sent[shared.key]
        self._submitted += 1  # Dask begins with those of high priority: earlier ones first
        return self._client.submit(
            _run_on_cluster, shared.key, data, run, task, self._id, __version__, pure=False, priority=-self._submitted
        )

    def watch(self) -> None:
        """Pass on a request to stop."""
        if self.stopping.is_set() and not self._told:
            self._tell("stop")

    def drop(self, futures: Sequence[Any]) -> None:
        """Have tasks that have not begun end at once."""
        if futures and self._told != "drop":
            self._tell("drop")

    def _tell(self, what: str) -> None:
        self._told = what
        with suppress(OSError, TimeoutError):  # a lost scheduler shows at the tasks
            self._client.run(_tell_here, self._id, what)

    def result(self, future: Any) -> Any:
        """Return the result of a finished task, or raise its error."""
        if future.status in ("cancelled", "lost"):
            raise WorkerError(
                f"the scheduler at '{self._address}' was lost; what was finished and saved is kept: start it again, "
                "and the same command continues"
            )
        try:
            result = future.result()
        except self._killed as error:
            raise WorkerLostError from error
        if isinstance(result, _Dropped):
            raise NotBegunError
        return result

    def close(self) -> None:
        """Leave the cluster, which goes on."""
        if self._client is not None:
            self._client.close(timeout=_CONNECT)
        self._log.setLevel(self._level)


_SAME = "install the same version of Steelyard for the scheduler, its workers and this command"


def _other_version(theirs: Iterable[str]) -> str:
    return f"a worker has Steelyard {', '.join(sorted(theirs))}, this command {__version__}; {_SAME}"


def _connected(distributed: Any, address: str, security: Any) -> Any:
    try:
        return distributed.Client(
            address, timeout=_CONNECT, set_as_default=False, security=security if address[:3] == "tls" else None
        )
    except (OSError, ValueError) as error:
        raise WorkerError(
            f"no scheduler answers at '{address}' within {_CONNECT:g} s; start one with: dask scheduler --host "
            "127.0.0.1, or correct the address"
        ) from error


def _check_address(address: str, tls_files: tuple[str | None, ...]) -> None:
    """Refuse an address that is open to others: whoever reaches a scheduler can run code on its workers."""
    try:
        parts = urlsplit(address)
        is_complete = parts.scheme in ("tcp", "tls") and bool(parts.hostname) and bool(parts.port)
    except ValueError:
        is_complete, parts = False, urlsplit("")
    if not is_complete:
        raise WorkerError(f"scheduler is '{address}'; allowed: tcp://127.0.0.1:PORT or tls://HOST:PORT")
    if parts.scheme == "tls" and not all(tls_files):
        raise WorkerError(
            f"scheduler '{address}' needs certificates: set DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ..."
            "__TLS__CLIENT__CERT and ...__TLS__CLIENT__KEY to their files"
        )
    host = parts.hostname or ""
    is_loopback = host == "localhost"
    with suppress(ValueError):
        is_loopback = is_loopback or ipaddress.ip_address(host).is_loopback
    if parts.scheme == "tcp" and not is_loopback:
        raise WorkerError(
            f"scheduler '{address}' is on another machine without encryption: whoever reaches its port can run any "
            "code on the workers and here; use tls://HOST:PORT with certificates, or forward the port by ssh to "
            "tcp://127.0.0.1:PORT"
        )


_told: dict[str, str] = {}
"""In a worker of a cluster: what tasks of a client were told, ``stop`` or ``drop``."""

_at_work = threading.Lock()
"""In a worker of a cluster: opened data are used by one thread at a time."""


class _Dropped:
    """Result of a task that was dropped before it began."""


def _version_here() -> str:
    return __version__


def _tell_here(client: str, what: str) -> None:
    _told[client] = what


def _as_it_is(data: bytes) -> bytes:
    return data


def _run_on_cluster(key: str, data: bytes, run: Run[Any, Any, Any], task: Any, client: str, version: str) -> Any:
    if version != __version__:
        raise WorkerError(f"a worker has Steelyard {__version__}, this command {version}; {_SAME}")
    with _at_work:
        if _told.get(client) == "drop":
            return _Dropped()
        return run(opened_here(key, data), task, lambda: client in _told)
