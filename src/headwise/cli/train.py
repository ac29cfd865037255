"""headwise train: from text files to a model folder; and headwise init, which writes a run file for it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from headwise.config import RunConfig


def _files(about: str) -> Any:
    return typer.Option(metavar="FILE", help=about)


SRC, TGT = _files("Source, a sentence a line, plain or gzip."), _files("Its target, line by line.")
PAIRS = _files("Source TAB target, instead of both.")
DEV_SRC, DEV_TGT = _files("Source to validate on."), _files("Its target.")
DEV_PAIRS = _files("Source TAB target, instead of both.")
WEIGHT = typer.Option(metavar="NUMBER", help="How often a corpus stands in an epoch, one for each.")
SOURCE_LANG = typer.Option(metavar="CODE", help="Source language; else by the file's suffix.")
TARGET_LANG = typer.Option(metavar="CODE", help="Target language; else by the file's suffix.")
PRESET = typer.Option(metavar="NAME", help="tiny, small, base, big; else by the size of the data.")
INIT = typer.Option(metavar="MODEL", help="Model or run folder to begin from (fine-tuning).")
SET = typer.Option("--set", metavar="A.B=C", help="Change a setting.")
SEED = typer.Option(metavar="NUMBER", help="Same as --set train.seed=NUMBER.")


def train(
    run_file: Annotated[Path | None, typer.Argument(metavar="RUN.TOML", help="A run file; init writes one.")] = None,
    src: Annotated[list[Path] | None, SRC] = None,
    tgt: Annotated[list[Path] | None, TGT] = None,
    pairs: Annotated[list[Path] | None, PAIRS] = None,
    dev_src: Annotated[list[Path] | None, DEV_SRC] = None,
    dev_tgt: Annotated[list[Path] | None, DEV_TGT] = None,
    dev_pairs: Annotated[list[Path] | None, DEV_PAIRS] = None,
    weight: Annotated[list[float] | None, WEIGHT] = None,
    source_lang: Annotated[str | None, SOURCE_LANG] = None,
    target_lang: Annotated[str | None, TARGET_LANG] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The run folder.")] = None,
    preset: Annotated[str | None, PRESET] = None,
    init: Annotated[str | None, INIT] = None,
    seed: Annotated[int | None, SEED] = None,
    overrides: Annotated[list[str] | None, SET] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; else all that may be used.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> int:
    """Train a model: check the data, learn pieces, prepare, train, validate, average. Run again, it goes on."""
    given = dict(locals())
    from headwise.cli.extra import need_torch
    from headwise.cli.progress import Screen
    from headwise.train.stop import Stop

    with Stop() as stop:
        config, folder = _resolve(run_file, out, preset, overrides or [], _flags(given))
        need_torch()
        from headwise.train.run import train as train_in

        with Screen(quiet, config.train.max_steps) as screen:
            train_in(config, folder, _device(device), threads, screen.show, stop)
        return 128 + stop.number if stop.number else 0


def write_run_file(
    file: Annotated[Path, typer.Argument(metavar="RUN.TOML", help="The file to write; it must not be there yet.")],
    src: Annotated[list[Path] | None, SRC] = None,
    tgt: Annotated[list[Path] | None, TGT] = None,
    pairs: Annotated[list[Path] | None, PAIRS] = None,
    dev_src: Annotated[list[Path] | None, DEV_SRC] = None,
    dev_tgt: Annotated[list[Path] | None, DEV_TGT] = None,
    dev_pairs: Annotated[list[Path] | None, DEV_PAIRS] = None,
    weight: Annotated[list[float] | None, WEIGHT] = None,
    source_lang: Annotated[str | None, SOURCE_LANG] = None,
    target_lang: Annotated[str | None, TARGET_LANG] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The run folder to write down.")] = None,
    preset: Annotated[str | None, PRESET] = None,
    seed: Annotated[int | None, SEED] = None,
    overrides: Annotated[list[str] | None, SET] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Write a run file with every setting, its value and its meaning, for headwise train."""
    given = dict(locals())
    from headwise.atomic import write_text
    from headwise.cli.corpora import corpora
    from headwise.config import load_config
    from headwise.errors import FolderError
    from headwise.runfile import to_toml
    from headwise.train.setup import choose_preset

    if file.exists():
        raise FolderError(f"{file} is there already; choose another name or move it away")
    preset = preset or choose_preset(corpora(src, tgt, pairs))
    config = load_config(preset, flags=_flags(given), overrides=overrides or [])
    derived = {"model.vocab_size", "model.src_vocab_size", "model.d_k", "model.d_v"}
    top = {"preset": preset, "out": str(out or Path("runs") / file.stem)}
    write_text(file, to_toml(config, top, leave_out=frozenset(derived)))
    typer.echo(f"wrote {file}; next: headwise train {file}", err=True)


def _flags(given: dict[str, Any]) -> dict[str, Any]:
    """The flags as settings."""
    from headwise.cli.corpora import corpora
    from headwise.errors import InputError

    train = corpora(given["src"], given["tgt"], given["pairs"])
    dev = corpora(given["dev_src"], given["dev_tgt"], given["dev_pairs"], "dev-")
    weights = given["weight"] or [1.0] * len(train)
    if len(weights) != len(train):
        raise InputError(f"--weight is given {len(weights)} times for {len(train)} corpora: one for each")
    data = {
        "train": [corpus.model_dump() | {"weight": weight} for corpus, weight in zip(train, weights, strict=True)],
        "dev": [corpus.model_dump() for corpus in dev],
        "source_lang": given["source_lang"],
        "target_lang": given["target_lang"],
    }
    how = {"init": given.get("init"), "seed": given["seed"]}
    return {
        "data": {name: value for name, value in data.items() if value},
        "train": {name: value for name, value in how.items() if value is not None},
    }


def _resolve(
    run_file: Path | None, out: Path | None, preset: str | None, overrides: list[str], flags: dict[str, Any]
) -> "tuple[RunConfig, Path]":
    """The settings and the run folder; a run that is there stands in for what is not said."""
    from headwise.config import CorpusConfig, check, load_config, parse_override, paths_of, read_run_file
    from headwise.errors import InputError
    from headwise.train.setup import choose_preset

    named = read_run_file(run_file) if run_file else {}
    if out is None and run_file is not None:
        there = run_file.name == "run.toml" and (run_file.parent / "checkpoints").is_dir()
        out = Path(str(named.get("out") or "") or (run_file.parent if there else Path("runs") / run_file.stem))
    given = {path for override in overrides for path in paths_of(parse_override(override))}
    if "preset" in named:
        given |= set(paths_of(named))
    if "model.vocab_size" in given and "tokenizer.vocab_size" not in given:
        raise InputError("model.vocab_size follows from the tokenizer; set tokenizer.vocab_size instead")
    if out is None:
        raise InputError("where to? give --out DIR, such as --out runs/mine")
    if preset is None and run_file is None and (out / "run.toml").is_file():
        run_file = out / "run.toml"
    elif preset is None and "preset" not in named and ("model" not in named or "init" in flags["train"]):
        section = named.get("data")
        corpora = flags["data"].get("train") or (section.get("train") if isinstance(section, dict) else None)
        if not corpora:
            raise InputError("there is nothing to learn from: give --src and --tgt, or --pairs, or a run file")
        init = flags["train"].get("init")
        if init is None:
            preset = choose_preset([check(CorpusConfig, corpus) for corpus in corpora])
        else:
            return _from_model(init, run_file, overrides, flags), out
    return load_config(preset, run_file, overrides, flags), out


def _from_model(init: str, run_file: Path | None, overrides: list[str], flags: dict[str, Any]) -> "RunConfig":
    """Fine-tuning without a preset: what is not said is as it was for that model."""
    from headwise.bundle import Bundle, find_model
    from headwise.config import load_config

    base = Bundle.read(find_model(init)).config.model_dump(exclude={"data": {"train", "dev"}})
    return load_config(None, run_file, overrides, flags, base=base)


def _device(name: str) -> str:
    from headwise.errors import InputError

    if name not in ("auto", "cpu", "cuda"):
        raise InputError(f"there is no device {name!r}; choose from auto, cpu, cuda")
    return name
