"""Text to text: the straight line."""

from collections.abc import Sequence
from typing import Protocol

from headwise.config import SearchConfig
from headwise.text.tokenizer import Tokenizer


class Found(Protocol):
    """What the translator needs of a hypothesis."""

    @property
    def ids(self) -> Sequence[int]:
        """Target ids without the end."""


class Engine(Protocol):
    """Ids to ids."""

    def generate(self, sources: Sequence[Sequence[int]], search: SearchConfig) -> Sequence[Sequence[Found]]:
        """The hypotheses of each source, best first."""


class Translator:
    """A tokenizer and an engine."""

    def __init__(self, tokenizer: Tokenizer, engine: Engine, search: SearchConfig) -> None:
        self.tokenizer, self.engine, self.search = tokenizer, engine, search

    def translate(self, texts: Sequence[str]) -> list[str]:
        """The translation of each text; one without a word in it comes back as it is."""
        full = [i for i, text in enumerate(texts) if text.strip()]
        ids = self.tokenizer.encode_source([texts[i] for i in full])  # text/    str -> ids
        found = self.engine.generate(ids, self.search)  # engine/  model.encode, then search over model.step
        translations = list(texts)
        for i, hypotheses in zip(full, found, strict=True):
            translations[i] = self.tokenizer.decode(hypotheses[0].ids)  # text/    ids -> str
        return translations
