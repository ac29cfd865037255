"""headwise info: the architecture of a preset, a run file or a model folder, without torch."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwise.architecture import Architecture
    from headwise.bundle import Bundle
    from headwise.config import RunConfig


def info(
    what: Annotated[str, typer.Argument(metavar="PRESET_OR_MODEL", help="A preset, a run file (.toml), a model.")],
    overrides: Annotated[list[str] | None, typer.Option("--set", metavar="A.B=C", help="Change a setting.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Show a model's layers, widths, parameters by part, FLOPs a token and memory."""
    import json

    from headwise.architecture import describe

    config, saved = _find(what, overrides or [])
    architecture = describe(config.model)
    if as_json:
        about = {"name": what, "stored": saved and saved.stored, "said": (len(saved.said) or None) if saved else None}
        print(json.dumps({**about, **architecture.model_dump(), "settings": config.model_dump()}))
    else:
        _draw(what, saved, config, architecture)


def _find(what: str, overrides: "Sequence[str]") -> "tuple[RunConfig, Bundle | None]":
    """The configuration of what was named, and a saved model itself."""
    from pathlib import Path

    from headwise.config import hint, load_config, preset_names
    from headwise.errors import InputError
    from headwise.home import named_models

    if what in preset_names():
        return load_config(what, overrides=overrides), None
    if what.endswith(".toml"):
        return load_config(file=Path(what), overrides=overrides), None
    named = named_models()
    if not Path(what).exists() and what not in named:
        presets = preset_names()
        near = hint(what, [*presets, *named])
        raise InputError(f"{what!r} is no preset ({', '.join(presets)}), no run file and no model{near}")
    if overrides:
        raise InputError(f"--set changes presets and run files; {what} is a saved model")
    from headwise.bundle import Bundle, find_model

    bundle = Bundle.read(find_model(what))
    return bundle.config, bundle


def _draw(what: str, saved: "Bundle | None", config: "RunConfig", architecture: "Architecture") -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from headwise.units import in_bytes, short

    model, train, search = config.model, config.train, config.search
    stored, said = (saved.stored, saved.said) if saved else (None, ())
    count, flops, memory = architecture.parameters, architecture.flops, architecture.memory
    table = Table(box=box.SIMPLE_HEAD, show_header=False, title=what, title_justify="left", title_style="bold")
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")

    def section(name: str) -> None:
        table.add_section()
        table.add_row(f"[cyan]{name}[/]", "", "")

    def row(name: str, value: str, note: str = "") -> None:
        table.add_row(f"  {name}", value, note)

    section("architecture")
    row("layers", f"{model.n_encoder_layers} + {model.n_decoder_layers}", f"encoder + decoder, {model.norm}-norm")
    row("d_model", f"{model.d_model:,}", "width of every layer's output")
    row("d_ff", f"{model.d_ff:,}", f"inside the feed-forward, {model.activation}")
    row("heads", f"{model.n_heads}", f"of d_k {model.d_k}, d_v {model.d_v}")
    row("vocabulary", f"{model.vocab_size:,}", _sharing(config))
    if said:
        row("said", f"{len(said):,}", "pieces, those of targets in training")
    row("positions", model.positions)
    row("dropout", f"{model.dropout:g}")
    section("parameters")
    row("embeddings", f"{count.embeddings:,}")
    row("encoder", f"{count.encoder:,}")
    row("decoder", f"{count.decoder:,}")
    if count.output:
        row("output", f"{count.output:,}")
    row("total", f"{count.total:,}")
    section(f"FLOPs a token (length {flops.length})")
    row("training", short(flops.training_per_token), "forward + backward, both sides")
    row("encoding", short(flops.encoding_per_token), "the encoder, a source token")
    row("decoding", short(flops.decoding_per_token), "one cached step, a target token")
    section("memory")
    row("weights, float32", in_bytes(memory.weights_float32), "as stored here" if stored == "float32" else "")
    row("weights, float16", in_bytes(memory.weights_float16), "as stored here" if stored == "float16" else "")
    row("weights, int8", in_bytes(memory.weights_int8), "as stored here" if stored == "int8" else "")
    row("training state", in_bytes(memory.training_state), "weights, gradients, Adam's moments")
    row("decoding cache", in_bytes(memory.cache_per_token), "a token of a hypothesis")
    section("recipe")
    row("batch", f"{config.data.batch_tokens:,}", "target tokens")
    row("steps", f"{train.max_steps:,}", f"warm-up {train.warmup_steps:,}, schedule {train.schedule}")
    row("search", f"beam {search.beam_size}", f"{search.length_penalty}, alpha {search.alpha:g}, stop {search.stop}")
    Console().print(table)


def _sharing(config: "RunConfig") -> str:
    model = config.model
    shared = {
        "three-way": "shared by source, target, output",
        "two-way": "shared by target and output",
        "none": "not shared",
    }[model.share_embeddings]
    return shared if model.src_vocab_size == model.vocab_size else f"source {model.src_vocab_size:,}; {shared}"
