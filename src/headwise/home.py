"""Where models lie: those of the user, what is made from them, and those that come with headwise."""

import os
import sys
from importlib.resources import files
from pathlib import Path

from headwise.text.languages import find_language

BOX = (("en", "de"), ("de", "en"))  # from which language to which; the first is taken where none is asked for


def home() -> Path:
    """$HEADWISE_HOME, or the place where programs keep a user's data on this system."""
    if given := os.environ.get("HEADWISE_HOME"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "headwise"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "headwise"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "headwise"


def own_models() -> Path:
    """The user's models, a folder each."""
    return home() / "models"


def converted() -> Path:
    """Models in CTranslate2's form; the name of a folder begins with the identity of what it was made from."""
    return home() / "ctranslate2"


def box() -> Path:
    """The models that come with headwise, a folder each."""
    return Path(str(files("headwise"))) / "box"


def box_model(source_lang: str | None = None, to: str | None = None) -> Path:
    """The model in the box that is taken where none is named, between languages that may be asked for."""
    left = list(BOX)
    for side, role, asked in ((1, "target", to), (0, "source", source_lang)):
        if asked is not None:
            code = find_language(asked, [pair[side] for pair in left], role)
            left = [pair for pair in left if pair[side] == code]
    return box() / "-".join(left[0])


def named_models() -> dict[str, Path]:
    """The folders of all models that have a name; one of the user's goes before one in the box."""
    places = [place for place in (box(), own_models()) if place.is_dir()]
    return {
        folder.name: folder
        for place in places
        for folder in sorted(place.iterdir())
        if folder.is_dir() and not folder.name.startswith(".")  # a dot: not yet whole
    }
