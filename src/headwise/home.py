"""Where models lie: those of the user, what is made from them, and those that come with headwise."""

import os
import sys
from importlib.resources import files
from pathlib import Path

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


def box_model(source_lang: str = BOX[0][0], target_lang: str = BOX[0][1]) -> Path:
    """The model in the box between these languages, or the one that is taken where none is asked for."""
    return box() / f"{source_lang}-{target_lang}"


def named_models() -> dict[str, Path]:
    """The folders of all models that have a name; one of the user's goes before one in the box."""
    places = [place for place in (box(), own_models()) if place.is_dir()]
    return {
        folder.name: folder
        for place in places
        for folder in sorted(place.iterdir())
        if folder.is_dir() and not folder.name.startswith(".")  # a dot: not yet whole
    }
