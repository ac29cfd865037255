"""From a name to a translator."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, get_args

from headwise.bundle import Bundle, find_model
from headwise.config import SearchConfig, check
from headwise.engine.choose import EngineName, open_engine
from headwise.engine.ctranslate2 import ComputeType
from headwise.errors import BundleError, InputError
from headwise.home import BOX, box_model
from headwise.text.languages import find_language
from headwise.text.tokenizer import Tokenizer
from headwise.translator import Translator

KINDS = ("auto", *get_args(ComputeType))


def load(
    model: Path | str | None = None,
    *,
    engine: str = "auto",
    compute_type: str = "auto",
    threads: int | None = None,
    search: Mapping[str, Any] | None = None,
) -> Translator:
    """The translator of a model or run folder, of a model by its name, or of the one in the box.

    engine        auto, torch or ctranslate2; auto takes the fastest one here that can do what is asked for
    compute_type  of ctranslate2: auto, float32, int8 or bfloat16
    threads       of the CPU; else all that may be used
    search        settings of the search that are to differ from the model's own, such as {"beam_size": 1}
    """
    for name, value, known in (("engine", engine, get_args(EngineName)), ("compute type", compute_type, KINDS)):
        if value not in known:
            raise InputError(f"there is no {name} {value!r}; choose from {', '.join(known)}")
    folder = find_model(model)
    bundle = Bundle.read(folder)
    if bundle.tokenizer is None:
        raise BundleError(f"{folder} has no tokenizer, so it cannot translate text")
    wanted = check(SearchConfig, bundle.config.search.model_dump() | dict(search or {}), where="in search")
    threads = threads or len(os.sched_getaffinity(0))
    opened = open_engine(folder, bundle, wanted, threads, cast(EngineName, engine), compute_type)
    languages = bundle.config.data.source_lang, bundle.config.data.target_lang
    translator = Translator(Tokenizer.from_text(bundle.tokenizer), opened.engine, wanted, languages)
    translator.why = opened.why
    return translator


def box_between(source_lang: str | None, to: str | None) -> Path:
    """The model in the box for the languages that are asked for, by code or by English name."""
    left = list(BOX)
    for side, role, asked in ((1, "target", to), (0, "source", source_lang)):
        if asked is not None:
            code = find_language(asked, [pair[side] for pair in left], role)
            left = [pair for pair in left if pair[side] == code]
    return box_model(*left[0])
