"""Workers or threads: how CTranslate2 shares out the cores, for many sentences and for one by itself."""

import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import TypeVar

import ctranslate2

T = TypeVar("T")
Load = Callable[[int, int], ctranslate2.Translator]  # workers, threads of each

MOST = 4  # threads that take part in one sentence
TRIALS = 3  # of either way, before the faster one is taken
AGAIN, SELDOM = 32, 1024  # calls until the slower way is tried again; twice as many each time that it is slower still
FRESH = 0.3  # how much the last call counts beside those before it

_threaded: "weakref.ref[Layout] | None" = None  # which one has a worker of several threads


class Layout:
    """Workers of one thread each; and for a sentence by itself one of several, when that has been faster of late.

    Threads within a worker wait for each other after every product. While nothing else runs, a sentence is done sooner
    so by all but the smallest models; beside other work far later. No more than one layout of a process has such a
    worker: with two, there would be more threads than cores, and waiting ones seem to be put to sleep then.
    """

    def __init__(self, load: Load, threads: int) -> None:
        self.load, self.threads = load, min(threads, MOST)
        self.workers = load(threads, 1)
        self.one: ctranslate2.Translator | None = None
        self.busy = threading.Lock()
        self.calls, self.next, self.wait = 0, 2 * TRIALS + AGAIN, AGAIN
        self.took = [inf, inf]  # seconds a piece, by workers and by threads

    def alone(self, n_pieces: int, call: Callable[[ctranslate2.Translator], T]) -> T:
        """What `call` gives for one sentence of so many pieces."""
        if not self._has_threads() or not self.busy.acquire(blocking=False):
            return call(self.workers)
        try:
            self.calls += 1
            faster = int(self.took[1] < self.took[0])
            trial = self.calls >= self.next
            way = int(self.calls > TRIALS) if self.calls <= 2 * TRIALS else faster ^ trial
            translator = self._one() if way else self.workers
            began = time.perf_counter()
            found = call(translator)
            self._note(way, (time.perf_counter() - began) / n_pieces, trial)
            return found
        finally:
            self.busy.release()

    def _note(self, way: int, seconds: float, trial: bool) -> None:
        """How long it took; the first calls, which also load something, count no more than the best of them."""
        if trial:
            self.wait = AGAIN if seconds < self.took[1 - way] else min(2 * self.wait, SELDOM)
            self.next = self.calls + self.wait
        known = self.took[way]
        if trial or self.calls <= 2 * TRIALS:
            self.took[way] = seconds if trial else min(known, seconds)
        else:
            self.took[way] = known + FRESH * (seconds - known)

    def _has_threads(self) -> bool:
        """Whether this one may have a worker of several threads."""
        global _threaded
        if self.threads == 1:
            return False
        if _threaded is None or _threaded() is None:
            _threaded = weakref.ref(self)
        return _threaded() is self

    def _one(self) -> ctranslate2.Translator:
        """The worker of several threads; loaded by a thread that ends, which makes it far faster (docs/design.md).

        Where it cannot be loaded any more, as its files are gone, the others do its work.
        """
        if self.one is None:
            with ThreadPoolExecutor(1) as pool:
                loading = pool.submit(self.load, 1, self.threads)
            self.one = self.workers if loading.exception() else loading.result()
        return self.one
