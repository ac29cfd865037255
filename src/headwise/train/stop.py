"""SIGINT and SIGTERM: at once while nothing is at stake, after the update and its checkpoint while something is."""

import signal
import threading
from types import FrameType
from typing import Any

from headwise.errors import Interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """As a `with`: a signal raises Interrupted, or, while `gentle`, is only noted; a second one always raises."""

    def __init__(self) -> None:
        self.gentle = False
        self.number = 0  # of the signal that came
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Stop":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._come) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _come(self, number: int, frame: FrameType | None) -> None:
        if self.number or not self.gentle:
            raise Interrupted(number)
        self.number = number
