"""The reference as Markdown, made from the program itself: its commands, its settings, its public names."""

import json
from collections.abc import Iterator
from inspect import cleandoc, isclass
from types import NoneType
from typing import Any, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

import headwise
from headwise import errors
from headwise.cli.main import app
from headwise.config import LIMITS, CorpusConfig, Settings, known_settings, load_config, preset_names, settings_of

KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def commands() -> str:
    """Every command: what it does, how it is called, its arguments and options."""
    return "\n".join(_command(*one) for one in walk("headwise", typer.main.get_command(app)))


def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command and those below it, each with what is typed."""
    yield name, command
    for verb, below in getattr(command, "commands", {}).items():
        yield from walk(f"{name} {verb}", below)


def _command(name: str, command: Any) -> str:
    context = command.context_class(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    lines = [f"## {name}\n\n{cleandoc(command.help)}\n\n```text\n{usage}\n```\n"]
    for parameter in command.params:
        words, about = parameter.get_help_record(context)
        lines.append(_entry(words, about + " May be given several times." * parameter.multiple))
    return "\n".join(lines)


def settings() -> str:
    """Every setting: its meaning, what it may be, its default; then what the presets say."""
    sections: dict[str, list[str]] = {}
    for path, field in known_settings().items():
        sections.setdefault(path.rpartition(".")[0], []).append(_setting(path, field))
    sections["data.train and data.dev"] = [_setting(*one) for one in CorpusConfig.model_fields.items()]
    lines = [line for name, entries in sections.items() for line in (f"## {name}\n", *entries)]
    return "\n".join([*lines, "## Presets\n\nWhat is not in this table has its default in all of them.\n", *_presets()])


def _setting(path: str, field: FieldInfo) -> str:
    limits = [
        f"{words} {getattr(limit, name):,}"
        for limit in field.metadata
        for words, name in LIMITS.values()
        if hasattr(limit, name)
    ]
    if field.is_required():
        default = "no default, presets say it"
    elif field.default_factory:
        default = "follows from others"
    else:
        default = f"default {_value(field.default)}"
    return _entry(path, f"{field.description}\\\n  {', '.join([_kind(field.annotation), *limits])}; {default}")


def _kind(annotation: Any) -> str:
    """A type in words."""
    if annotation in KINDS:
        return KINDS[annotation]
    parts = [part for part in get_args(annotation) if part is not NoneType]
    inner = [_value(part) if isinstance(part, str) else _kind(part) for part in parts]
    if get_origin(annotation) is list:
        return f"a list of {' '.join(inner)}"
    return " or ".join(inner) or annotation.__name__


def _presets() -> Iterator[str]:
    """A table of the settings in which a preset differs from the defaults, the smallest model first."""
    names = sorted(preset_names(), key=lambda name: load_config(name).model.d_model)
    configs = [settings_of(load_config(name)) for name in names]
    yield f"| | default | {' | '.join(names)} |"
    yield "|---" * (len(names) + 2) + "|"
    for path, field in known_settings().items():
        default = None if field.is_required() or field.default_factory else field.default
        values = [config[path] for config in configs]
        if any(value != default for value in values):
            cells = ["" if default is None else _value(default), *map(_value, values)]
            yield f"| `{path}` | {' | '.join(cells)} |"


def api() -> str:
    """Every public name, functions first, for autodoc to describe; then the tree of errors."""
    names = sorted(headwise.__all__, key=lambda name: isclass(getattr(headwise, name)))
    tree = cleandoc(errors.__doc__ or "").partition("\n\n")[2]
    return "\n".join([*map(_public, names), f"## Errors\n\n```text\n{tree}\n```\n"])


def _public(name: str) -> str:
    what, kind, more = getattr(headwise, name), "function", ""
    if isclass(what):
        kind, more = "class", "(**settings)" if issubclass(what, Settings) else "\n   :members:"
    return f"## {name}\n\n```{{eval-rst}}\n.. auto{kind}:: headwise.{name}{more}\n```\n"


def _entry(term: str, about: str) -> str:
    return f"`{term}`\n: {about}\n"


def _value(value: Any) -> str:
    return "nothing" if value is None else f"`{json.dumps(value)}`"
