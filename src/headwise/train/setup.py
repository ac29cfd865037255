"""Everything before the first step: the data is looked at and prepared, the settings are completed and compared."""

import itertools
import json
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from headwise.atomic import write_text
from headwise.bundle import Bundle, find_model
from headwise.config import CORPORA, CorpusConfig, DataConfig, RunConfig, Settings, check, load_config, settings_of
from headwise.data.check import check_corpora
from headwise.data.corpus import Corpus, directions, hold_out, spread
from headwise.data.prepared import Prepared, prepare
from headwise.errors import BundleError, ConfigError, DataError
from headwise.runfile import to_toml
from headwise.text.tokenizer import Tokenizer, vocabulary_for
from headwise.train.folder import RunFolder
from headwise.train.log import Log

TINY_BELOW = 100_000  # pairs
NO_LANGUAGES = {"txt", "tsv", "csv", "src", "tgt", "raw", "tok", "bpe"}  # suffixes of other meaning
LEARN_FROM = 1_000_000  # pairs at most that the tokenizer is learned from, which are 2 million lines
HELD_OUT, HELD_OUT_PAIRS = 100, 1000  # without dev, one pair in so many is held out, and at most so many
DEV_TEXT, SAID = "dev.jsonl", "said.json"

# What may change when a run is gone on with: limits, intervals, patience, how many to keep.
FREE = {
    "train.max_steps",
    "train.max_epochs",
    "train.max_minutes",
    "train.log_every",
    "train.validate_every",
    "train.decode_dev",
    "train.patience",
    "train.save_every",
    "train.keep_checkpoints",
    "train.average_checkpoints",
    "train.average",
    "train.tensorboard",
}
MAY_DIFFER_FROM_INIT = {"dropout", "attention_dropout", "ff_dropout", "attention", "vocab_size", "src_vocab_size"}


class DevPair(NamedTuple):
    """A pair that is validated on."""

    src: str
    ref: str
    to: str | None = None  # its target language, in a model that knows several


def set_up(config: RunConfig, folder: RunFolder, log: Log) -> None:
    """Make the folder ready to train in, or see that what is asked for is what it was made for."""
    files, dev_files = ([Corpus.of(corpus) for corpus in corpora] for corpora in (config.data.train, config.data.dev))
    if not files:
        raise ConfigError("there is nothing to learn from: give --src and --tgt, or --pairs, or [[data.train]]")
    is_new = not folder.run_file.exists()
    config = _completed(config, _look(files, dev_files, log)) if is_new else _gone_on_with(config, folder.run_file)
    train, dev = (directions(corpora, config.data) for corpora in (config.data.train, config.data.dev))
    if not dev:
        n_pairs = sum(1 for corpus in files for _ in corpus.raw_pairs())
        train, dev = hold_out(train, min(HELD_OUT_PAIRS, max(1, n_pairs // HELD_OUT)))
    train = [replace(corpus, copies=config.data.copies) for corpus in train]
    tokenizer = _tokenizer(config, folder, train)
    cut = config.tokenizer
    prepared = prepare(train, tokenizer, folder.data / "train", config.data.max_pieces, cut.bpe_dropout, cut.n_samples)
    if not len(prepared):
        raise DataError(f"no pairs are left: {prepared.n_empty} have an empty side, {prepared.n_long} are too long")
    if not len(prepare(dev, tokenizer, folder.data / "dev", config.data.max_pieces)):
        raise DataError("no pairs are left to validate on")
    if not (folder.data / SAID).exists():
        write_text(folder.data / SAID, json.dumps(_said(prepared, tokenizer, config.train.init)))
    if not (folder.data / DEV_TEXT).exists():
        pairs = _in_turn(dev, tokenizer)
        write_text(folder.data / DEV_TEXT, "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs))
    sizes = {"vocab_size": tokenizer.vocab_size, "src_vocab_size": tokenizer.src_vocab_size}
    config = _changed(config, model={**config.model.model_dump(), **sizes})
    if is_new or load_config(file=folder.run_file) != config:
        write_text(folder.run_file, to_toml(config))


def dev_pairs(folder: RunFolder, n: int | None) -> list[DevPair]:
    """The first `n` pairs that are validated on, or all, as text."""
    with open(folder.data / DEV_TEXT, encoding="utf-8", newline="\n") as lines:
        return [DevPair(*pair) for pair in map(json.loads, itertools.islice(lines, n))]


def said(folder: RunFolder) -> tuple[int, ...]:
    """The pieces among which the model of this run is to choose; none stands for all."""
    return tuple(json.loads((folder.data / SAID).read_text()))


def _said(prepared: Prepared, tokenizer: Tokenizer, init: str | None) -> list[int]:
    """What targets have, and had in the training that this one goes on from; none where that is not known."""
    pieces = {*prepared.said(tokenizer.vocab_size)}
    if init is not None:
        before = Bundle.read(find_model(init)).said
        pieces = {*before, *pieces} if before else set()
    return sorted(pieces)


def _in_turn(dev: Sequence[Corpus], tokenizer: Tokenizer) -> Iterator[list[str]]:
    """The pairs of all corpora by turns, so that the first few are of every direction."""
    for pairs in itertools.zip_longest(*(corpus.pairs() for corpus in dev)):
        for corpus, pair in zip(dev, pairs, strict=True):
            if pair and all(text.strip() for text in pair):
                yield [*pair, corpus.to] if corpus.to and tokenizer.languages else [*pair]


def choose_preset(corpora: Sequence[CorpusConfig]) -> str:
    """What suits so many pairs."""
    few = itertools.islice(
        itertools.chain.from_iterable(Corpus.of(corpus).raw_pairs() for corpus in corpora), TINY_BELOW
    )
    return "tiny" if sum(1 for _ in few) < TINY_BELOW else "small"


def _look(train: Sequence[Corpus], dev: Sequence[Corpus], log: Log) -> int:
    """What `headwise data check` does; errors stop here. How many pairs there are."""
    report = check_corpora(train, dev)
    found = [finding for finding in report.findings.values() if finding.count]
    if errors := [finding for finding in found if finding.level == "error"]:
        raise DataError("\n".join(f"{f.name}: {', '.join(f.where)}; {f.fix}" for f in errors))
    warnings = {finding.name: {"count": finding.count, "where": finding.where, "fix": finding.fix} for finding in found}
    log.write("check", pairs=report.n_train, dev_pairs=report.n_dev, warnings=warnings)
    return report.n_train


def _completed(config: RunConfig, n_pairs: int) -> RunConfig:
    """With what follows from the data: how many pieces to learn, and the languages by the files' names."""
    data, cut = config.data, config.tokenizer
    languages = {"source_lang": data.source_lang, "target_lang": data.target_lang}
    for name, file in (("source_lang", data.train[0].src), ("target_lang", data.train[0].tgt)):
        suffix = re.fullmatch(r".*\.([a-z]{2,3})(\.gz)?", file or "")
        if languages[name] == "und" and suffix and suffix[1] not in NO_LANGUAGES:
            languages[name] = suffix[1]
    n_pieces = cut.vocab_size or (None if cut.kind == "characters" else vocabulary_for(n_pairs))
    config = _changed(
        config, data={**data.model_dump(), **languages}, tokenizer={**cut.model_dump(), "vocab_size": n_pieces}
    )
    if config.data.both_ways and any("und" in pair for pair in _languages(config.data)):
        raise ConfigError(
            "data.both_ways needs both languages: give --source-lang and --target-lang, such as en and de"
        )
    if config.train.init is None:
        return config
    given = Bundle.read(find_model(config.train.init)).config.model
    different = _differences(given, config.model, MAY_DIFFER_FROM_INIT)
    if different:
        raise ConfigError("\n".join(f"model.{line} ({config.train.init} is to be the beginning)" for line in different))
    return config


def _languages(data: DataConfig) -> list[tuple[str, str]]:
    """Source and target of each corpus."""
    return [(c.source_lang or data.source_lang, c.target_lang or data.target_lang) for c in data.train]


def _gone_on_with(config: RunConfig, run_file: Path) -> RunConfig:
    """The settings of a run that is there already; a ConfigError names everything that may not change."""
    old = load_config(file=run_file)
    data, cut = config.data.model_dump(), config.tokenizer.model_dump()
    for name in ("source_lang", "target_lang"):
        data[name] = data[name] if data[name] != "und" else getattr(old.data, name)
    cut["vocab_size"] = cut["vocab_size"] or old.tokenizer.vocab_size
    sizes = {"vocab_size": old.model.vocab_size, "src_vocab_size": old.model.src_vocab_size}
    config = _changed(config, data=data, tokenizer=cut, model={**config.model.model_dump(), **sizes})
    free = FREE - ({"train.max_steps"} if old.train.schedule in ("cosine", "linear") else set())
    lines = _differences(old, config, free | set(CORPORA))
    for path in ("train", "dev"):  # where files lie may change, what they say is known by a hash
        before, now = ([(c.weight, c.to) for c in directions(getattr(x.data, path), x.data)] for x in (old, config))
        if before != now:
            lines.append(f"data.{path} had corpora of weights and target languages {before} and has {now}")
    if lines:
        lines = [f"{run_file}: {line}" for line in lines]
        raise ConfigError("\n".join([*lines, "a run goes on as it began; undo this, or train in a new folder"]))
    return config


def _differences(old: Settings, new: Settings, free: Set[str]) -> list[str]:
    values = settings_of(new)
    return [
        f"{path} was {value!r} and is now {values[path]!r}"
        for path, value in settings_of(old).items()
        if value != values[path] and path not in free and path.split(".")[0] not in free
    ]


def _changed(config: RunConfig, **sections: dict[str, Any]) -> RunConfig:
    return check(RunConfig, {**config.model_dump(), **sections})


def _tokenizer(config: RunConfig, folder: RunFolder, train: Sequence[Corpus]) -> Tokenizer:
    """The one of this run: as it was learned, or that of the model to begin from, or learned now."""
    file = folder.tokenizer_file
    if not file.exists():
        if config.train.init:
            text = Bundle.read(find_model(config.train.init)).tokenizer
            if text is None:
                raise BundleError(f"{config.train.init} has no tokenizer, so it cannot be trained further")
        else:
            n_pairs = sum(1 for corpus in train for _ in corpus.raw_pairs())
            source, target = _lines(train, n_pairs, side=0), _lines(train, n_pairs, side=1)
            targets = sorted({corpus.to or "und" for corpus in train})
            tags = targets if len(targets) > 1 else []
            text = Tokenizer.learn(source, target, config.tokenizer, n_pairs, tags).to_text()
        write_text(file, text)
    return Tokenizer.from_text(file.read_text(encoding="utf-8"))


def _lines(train: Sequence[Corpus], n_pairs: int, side: int) -> Iterator[str]:
    """One side of the pairs that the tokenizer is learned from."""
    for pair in spread(train, n_pairs, LEARN_FROM):
        if all(text.strip() for text in pair):
            yield pair[side]
