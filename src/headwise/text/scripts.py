"""Writing systems."""

import unicodedata
from functools import cache

LATIN = "LATIN"


@cache
def script(letter: str) -> str:
    """The first word of a letter's name: LATIN, CYRILLIC, CJK, HIRAGANA and so on."""
    return unicodedata.name(letter, "").partition(" ")[0]


def scripts(text: str) -> list[str]:
    """That of each letter."""
    return [script(character) for character in text if character.isalpha()]
