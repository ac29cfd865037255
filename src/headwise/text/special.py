"""Pieces that stand for no text: decided once, first in every vocabulary and in this order."""

PAD, BOS, EOS, UNK = SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
PAD_ID, BOS_ID, EOS_ID, UNK_ID = range(len(SPECIAL))


def language_tag(code: str) -> str:
    """The piece that asks for a target language; it stands first in the source."""
    return f"<2{code}>"
