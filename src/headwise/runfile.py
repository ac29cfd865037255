"""A run file written out: every setting with its value and what it means, as TOML that reads back the same."""

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from headwise.config import CorpusConfig, RunConfig, Settings

COMMENT_AT = 34  # column of the comments


def to_toml(config: RunConfig, top: Mapping[str, str] | None = None, leave_out: frozenset[str] = frozenset()) -> str:
    """The whole configuration; `top` stands before the first section, `leave_out` are dotted paths."""
    lines = [f"{name} = {_value(value)}" for name, value in (top or {}).items()]
    for name in type(config).model_fields:
        lines += _section(getattr(config, name), name, leave_out)
    return "\n".join(lines).lstrip("\n") + "\n"


def _section(section: Settings, path: str, leave_out: frozenset[str]) -> Iterator[str]:
    yield ""
    yield f"[{path}]"
    later: list[str] = []
    for name, field in type(section).model_fields.items():
        value, about = getattr(section, name), field.description or ""
        if f"{path}.{name}" in leave_out:
            continue
        if isinstance(value, Settings):
            later += _section(value, f"{path}.{name}", leave_out)
        elif isinstance(value, list):
            later += _corpora(value, f"{path}.{name}", about)
        elif value is None:
            yield _line(f"# {name} =", about)
        else:
            yield _line(f"{name} = {_value(value)}", about)
    yield from later


def _corpora(corpora: list[CorpusConfig], path: str, about: str) -> Iterator[str]:
    if not corpora:
        yield ""
        yield _line(f"# [[{path}]]", about)
        yield _line("# src =", "and tgt =, or pairs =")
    for corpus in corpora:
        yield ""
        yield _line(f"[[{path}]]", about)
        for name, field in CorpusConfig.model_fields.items():
            if (value := getattr(corpus, name)) is not None:
                yield _line(f"{name} = {_value(value)}", field.description or "")


def _line(setting: str, about: str) -> str:
    return f"{setting:<{COMMENT_AT - 1}} # {textwrap.shorten(about, 200)}"


def _value(value: Any) -> str:
    """A TOML value; numbers, booleans and strings are written alike in JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
