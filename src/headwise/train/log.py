"""log.jsonl: one JSON object a line for everything that happens, for programs to read and for the report."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwise.errors import FolderError

Event = dict[str, Any]
Tell = Callable[[Event], None]


class Log:
    """Appends to a file and tells whoever draws; nothing that was written is ever changed."""

    def __init__(self, file: Path | None, tell: Tell) -> None:
        self.file, self.tell = file, tell
        if file is not None and file.exists() and file.stat().st_size and not file.read_bytes().endswith(b"\n"):
            self._append("\n")  # a process was killed in the middle of a line

    def write(self, event: str, **facts: Any) -> None:
        """One event with its facts."""
        entry = {"event": event, "time": round(time.time(), 3), **facts}
        if self.file is not None:
            self._append(json.dumps(entry, ensure_ascii=False) + "\n")
        self.tell(entry)

    def _append(self, text: str) -> None:
        assert self.file is not None
        try:
            with open(self.file, "a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise FolderError(f"cannot write {self.file}: {error.strerror}") from error


def read_log(file: Path) -> list[Event]:
    """All events that count: what came after a checkpoint that was gone back to is left out, and so are torn lines."""
    events: list[Event] = []
    for line in file.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry["event"] == "resume":
            events = [past for past in events if past.get("step", 0) <= entry["step"]]
        events.append(entry)
    return events
