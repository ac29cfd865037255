"""Where headwise keeps what belongs to the user: models, and what is made from them."""

import os
import sys
from pathlib import Path


def home() -> Path:
    """$HEADWISE_HOME, or the place where programs keep a user's data on this system."""
    if given := os.environ.get("HEADWISE_HOME"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "headwise"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "headwise"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "headwise"
