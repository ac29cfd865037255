"""What a translator gives back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class Piece(NamedTuple):
    """A piece of a translation and what the model thought of it."""

    text: str
    log_prob: float


@dataclass(frozen=True)
class Translation:
    """A translated text; `str` of it is the text."""

    source: str
    text: str
    score: float = 0.0  #: the log probability normalised by length; of several sentences, the mean; NaN: not asked for
    log_prob: float = 0.0  #: of all its pieces and ends
    n_parts: int = 1  #: sentences, or shorter stretches, that were translated one by one
    complete: bool = True  #: False: a part was cut at the longest output that is allowed
    loop: str | None = None  #: how a repetition loop was mended: "alternative", "again" or "cut"
    pieces: tuple[Piece, ...] = ()  #: where details were asked for; the end of each part is a piece without text
    alignment: tuple[tuple[int, int], ...] = ()  #: pairs of words, counted from 0: of the source, of the text
    alternatives: tuple["Translation", ...] = ()  #: further ones, best first

    def __str__(self) -> str:
        return self.text

    @property
    def pharaoh(self) -> str:
        """The alignment as `0-0 1-2 ...`."""
        return " ".join(f"{i}-{j}" for i, j in self.alignment)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; what was not asked for is left out."""
        found: dict[str, Any] = {
            "source": self.source,
            "text": self.text,
            "score": self.score,
            "log_prob": self.log_prob,
            "parts": self.n_parts,
            "complete": self.complete,
            "loop": self.loop,
        }
        if self.pieces:
            found |= {"pieces": [list(piece) for piece in self.pieces], "alignment": [list(p) for p in self.alignment]}
        if self.alternatives:
            told = ("text", "score", "log_prob", "pieces", "alignment")
            alternatives = [other.to_dict() for other in self.alternatives]
            found["alternatives"] = [{name: a[name] for name in told if name in a} for a in alternatives]
        return found


def joined(source: str, spaces: Sequence[tuple[str, str]], parts: Sequence[Translation]) -> Translation:
    """Parts put together with the white space that stood around them; words are counted over the whole."""
    if len(parts) == 1 and not any(spaces[0]):
        return parts[0]
    text = "".join(before + part.text + after for (before, after), part in zip(spaces, parts, strict=True))
    alignment: list[tuple[int, int]] = []
    n_source = n_text = 0
    for part in parts:
        alignment += [(n_source + i, n_text + j) for i, j in part.alignment]
        n_source, n_text = n_source + len(part.source.split()), n_text + len(part.text.split())
    n_best = max((len(part.alternatives) for part in parts), default=0)
    others = [
        [part.alternatives[min(k, len(part.alternatives) - 1)] if part.alternatives else part for part in parts]
        for k in range(n_best)
    ]
    mended = [part.loop for part in parts if part.loop]
    return Translation(
        source,
        text,
        score=sum(part.score for part in parts) / max(1, len(parts)),
        log_prob=sum(part.log_prob for part in parts),
        n_parts=len(parts),
        complete=all(part.complete for part in parts),
        loop=mended[0] if mended else None,
        pieces=tuple(piece for part in parts for piece in part.pieces),
        alignment=tuple(alignment),
        alternatives=tuple(joined(source, spaces, other) for other in others),
    )
