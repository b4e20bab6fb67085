"""A thread that deletes expired items from time to time."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from libctx_core.errors import LibctxError

logger = logging.getLogger(__name__)

DEFAULT_MINUTES = 5.0


class Sweeper:
    """Calls `sweep` at intervals while it is started; a failed sweep is logged and tried again.

    Args:
        sweep: Deletes what is expired and returns how much that was.
        minutes: Time between sweeps; `DEFAULT_MINUTES` if None.
    """

    def __init__(self, sweep: Callable[[], int], minutes: float | None) -> None:
        self._sweep = sweep
        self._minutes = DEFAULT_MINUTES if minutes is None else minutes
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._done: Future[None] = Future()

    def start(self, minutes: float | None = None) -> "Future[None]":
        """Start the thread unless it runs; return the future of its end."""
        if self._thread is not None and self._thread.is_alive():
            return self._done
        self._stop.clear()
        self._done = Future()
        seconds = 60 * (self._minutes if minutes is None else minutes)
        self._thread = threading.Thread(
            target=self._run, args=(seconds, self._done), name="libctx-ttl-sweeper", daemon=True
        )
        self._thread.start()
        return self._done

    def _run(self, seconds: float, done: "Future[None]") -> None:
        while not self._stop.wait(seconds):
            try:
                self._sweep()
            except LibctxError:
                logger.exception("sweeping expired items failed; trying again in %.0f s", seconds)
        done.set_result(None)

    def stop(self, timeout: float | None = None) -> bool:
        """Ask the thread to end and wait for it; True once it has."""
        self._stop.set()
        thread = self._thread
        if thread is None:
            return True
        thread.join(timeout)
        return not thread.is_alive()
