"""Settings: frozen pydantic models, strict TOML, presets and overrides; every fault is named by its dotted path."""

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from headwise.errors import ConfigError

# Caps: a size past these is refused before anything is allocated.
MAX_WIDTH, MAX_INNER_WIDTH, MAX_LAYERS, MAX_HEADS, MAX_VOCABULARY = 16_384, 65_536, 256, 256, 1_000_000

Width = Annotated[int, Field(ge=1, le=MAX_WIDTH)]
InnerWidth = Annotated[int, Field(ge=1, le=MAX_INNER_WIDTH)]
Depth = Annotated[int, Field(ge=1, le=MAX_LAYERS)]
Heads = Annotated[int, Field(ge=1, le=MAX_HEADS)]
Vocabulary = Annotated[int, Field(ge=3, le=MAX_VOCABULARY)]
PieceId = Annotated[int, Field(ge=0, lt=MAX_VOCABULARY)]
Probability = Annotated[float, Field(ge=0, lt=1)]

AttendName = Literal["auto", "reference", "fused"]
SinusoidName = Literal["paper", "hf-marian", "tensor2tensor", "fairseq", "ctranslate2"]
PositionName = SinusoidName | Literal["learned", "rotary", "none"]
PenaltyName = Literal["gnmt", "length", "length+eos"]


class Settings(BaseModel):
    """What all settings share: frozen, no unknown keys, no silent conversion."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def __init__(self, **values: Any) -> None:
        """A wrong setting is a ConfigError, from Python as from a file."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _config_error(error, type(self), {}, f"in {type(self).__name__}") from None

    # With this mark pydantic checks nested settings itself, and so lists all their faults with whole paths.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


class AttentionConfig(Settings):
    """Which way of attending stands where (3.2.3); the names are those of `headwise.model.attend`."""

    encoder: AttendName = Field(default="auto", description="self-attention of the encoder")
    decoder: AttendName = Field(default="auto", description="self-attention of the decoder")
    cross: AttendName = Field(default="auto", description="attention of the decoder over the encoder's output")


class ModelConfig(Settings):
    """The architecture (3). A default is the paper's choice; the sizes have none."""

    vocab_size: Vocabulary = Field(description="pieces of the target, and of the source unless src_vocab_size differs")
    d_model: Width = Field(description="width of every layer's output (3.1)")
    d_ff: InnerWidth = Field(description="inner width of the feed-forward (3.3)")
    n_heads: Heads = Field(description="attention heads, the paper's h (3.2.2)")
    n_encoder_layers: Depth = Field(description="layers of the encoder, the paper's N (3.1)")
    n_decoder_layers: Depth = Field(description="layers of the decoder, the paper's N (3.1)")
    d_k: Width = Field(
        default_factory=lambda seen: max(1, seen["d_model"] // seen["n_heads"]),
        description="width of one head's queries and keys; d_model / n_heads unless given (Table 3 B)",
    )
    d_v: Width = Field(
        default_factory=lambda seen: max(1, seen["d_model"] // seen["n_heads"]),
        description="width of one head's values; d_model / n_heads unless given",
    )
    src_vocab_size: Vocabulary = Field(
        default_factory=lambda seen: seen["vocab_size"], description="pieces of the source; vocab_size unless given"
    )
    dropout: Probability = Field(default=0.1, description="on each sub-layer's output and on the embeddings (5.4)")
    attention_dropout: Probability = Field(default=0.0, description="on the attention weights (not in the paper)")
    ff_dropout: Probability = Field(default=0.0, description="inside the feed-forward (not in the paper)")
    norm: Literal["post", "pre"] = Field(default="post", description="norm after each residual (3.1), or before")
    norm_eps: float = Field(default=1e-5, gt=0, le=1e-2, description="added to the variance in layer norm")
    activation: Literal["relu", "gelu", "silu"] = Field(default="relu", description="of the feed-forward (3.3)")
    positions: PositionName = Field(default="paper", description="dialect of the positions (3.5)")
    max_positions: int = Field(default=1024, ge=1, le=65_536, description="rows of the table of learned positions")
    share_embeddings: Literal["three-way", "two-way", "none"] = Field(
        default="three-way",
        description="one matrix for source, target and output (3.4), for target and output only, or three matrices",
    )
    scale_embeddings: bool = Field(default=True, description="multiply embeddings by sqrt(d_model) (3.4)")
    output_bias: bool = Field(default=False, description="a bias on the output projection")
    attention: AttentionConfig = Field(default=AttentionConfig(), description="the way of attending at each place")
    pad_id: PieceId = Field(default=0, description="padding; hidden from attention in the source")
    bos_id: PieceId = Field(default=1, description="what the decoder starts from (Marian's is its padding)")
    eos_id: PieceId = Field(default=2, description="end of a sentence")

    @model_validator(mode="after")
    def _agree(self) -> Self:
        problems = list(self._disagreements())
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _disagreements(self) -> Iterator[str]:
        given = self.model_fields_set
        if not {"d_k", "d_v"} <= given and self.d_model % self.n_heads:
            yield (
                f"d_model ({self.d_model}) is not a multiple of n_heads ({self.n_heads}): "
                "change one, or give d_k and d_v"
            )
        for name in ("d_k", "d_v"):
            if self.n_heads * getattr(self, name) > MAX_INNER_WIDTH:
                yield f"n_heads ({self.n_heads}) times {name} ({getattr(self, name)}) is more than {MAX_INNER_WIDTH}"
        if self.share_embeddings == "three-way" and self.src_vocab_size != self.vocab_size:
            yield (
                f"share_embeddings is 'three-way', so src_vocab_size ({self.src_vocab_size}) "
                f"must equal vocab_size ({self.vocab_size})"
            )
        if (
            self.positions in get_args(SinusoidName)
            and self.positions != "paper"
            and (self.d_model % 2 or self.d_model < 4)
        ):
            yield f"positions '{self.positions}' need an even d_model of at least 4, not {self.d_model}"
        if self.positions == "rotary" and self.d_k % 2:
            yield f"positions 'rotary' need an even d_k, not {self.d_k}"
        for name in ("pad_id", "bos_id", "eos_id"):
            smallest = self.vocab_size if name == "bos_id" else min(self.vocab_size, self.src_vocab_size)
            if getattr(self, name) >= smallest:
                yield f"{name} ({getattr(self, name)}) lies outside the vocabulary of {smallest}"
        if self.eos_id in (self.pad_id, self.bos_id):
            yield f"eos_id ({self.eos_id}) must differ from pad_id ({self.pad_id}) and bos_id ({self.bos_id})"


class TokenizerConfig(Settings):
    """How text becomes pieces (5.1)."""

    kind: Literal["bpe", "unigram", "characters"] = Field(
        default="bpe", description="byte-level BPE, byte-level unigram, or the characters that were seen"
    )
    vocab_size: int | None = Field(
        default=None,
        ge=300,
        le=MAX_VOCABULARY,
        description="pieces to learn, by the number of pairs unless given; 'characters' has as many as it saw",
    )
    joint: bool = Field(default=True, description="one vocabulary for source and target")
    bpe_dropout: Probability = Field(default=0.0, description="merges left out when training text is cut, for 'bpe'")
    n_samples: int = Field(
        default=1, ge=1, le=100, description="ways in which each training text is cut, one an epoch, with bpe_dropout"
    )
    normalise: Literal["nfc", "none"] = Field(default="nfc", description="Unicode normalisation before anything else")

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.bpe_dropout and self.kind != "bpe":
            raise ValueError(f"bpe_dropout goes with kind = 'bpe', not '{self.kind}'")
        if (self.bpe_dropout > 0) != (self.n_samples > 1):
            raise ValueError("bpe_dropout and n_samples go together: give both, such as 0.1 and 10, or neither")
        return self


class CorpusConfig(Settings):
    """One corpus: two files side by side, or one of source TAB target."""

    src: str | None = Field(default=None, description="source, a sentence a line, plain or gzip")
    tgt: str | None = Field(default=None, description="its target, line by line")
    pairs: str | None = Field(default=None, description="source TAB target, instead of both")
    weight: float = Field(default=1.0, gt=0, le=1000, description="how often it stands in an epoch")
    source_lang: str | None = Field(default=None, description="its source language, where that is not data.source_lang")
    target_lang: str | None = Field(default=None, description="its target language, where that is not data.target_lang")

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (self.src is None, self.tgt is None, self.pairs is None) not in {(False, False, True), (True, True, False)}:
            raise ValueError("a corpus is src and tgt, or pairs")
        return self


Share = Annotated[float, Field(ge=0, le=1)]


class CopiesConfig(Settings):
    """Which share of the training pairs stands there once more, changed."""

    upper: Share = Field(default=0.0, description="in upper case")
    lower: Share = Field(default=0.0, description="with the source in lower case and the target as it is")
    no_stop: Share = Field(default=0.0, description="without the mark that ends the sentence")
    with_unknown: Share = Field(default=0.0, description="with a number, an address or an emoji that stays as it is")
    numbers: Share = Field(default=0.0, description="with other numbers, where both sides have the same in figures")


class DataConfig(Settings):
    """Text and batches (5.1)."""

    source_lang: str = Field(default="und", description="code of the source language, such as en")
    target_lang: str = Field(default="und", description="code of the target language")
    batch_tokens: int = Field(
        ge=1, le=10_000_000, description="pieces on either side of a batch at most, padding included"
    )
    max_pieces: int = Field(default=256, ge=2, le=65_536, description="longer pairs are left out of training")
    both_ways: bool = Field(default=False, description="learn each corpus from target to source too, in the same model")
    copies: CopiesConfig = Field(default=CopiesConfig(), description="pairs that stand there once more, changed")
    train: list[CorpusConfig] = Field(default=[], description="what is learned from")
    dev: list[CorpusConfig] = Field(default=[], description="what is validated on; 1 % of train where there is none")


class TrainConfig(Settings):
    """The training recipe (5)."""

    max_steps: int = Field(ge=1, description="updates in all (5.2)")
    max_epochs: int | None = Field(default=None, ge=1, description="times through the data at most")
    max_minutes: float | None = Field(default=None, gt=0, description="minutes of training at most, over all sittings")
    init: str | None = Field(default=None, description="model folder to begin from, instead of random weights")
    seed: int = Field(default=1, ge=0, lt=2**31, description="of first weights, order of batches, dropout")
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto", description="of matrix products; auto is bfloat16 where the machine has it"
    )
    warmup_steps: int = Field(ge=1, description="updates over which the learning rate rises (5.3)")
    schedule: Literal["paper", "inverse-sqrt", "cosine", "linear", "constant"] = Field(
        default="paper",
        description="Equation 3; its curve through peak_lr; or from peak_lr to 0 at max_steps; or peak_lr kept",
    )
    peak_lr: float | None = Field(
        default=None, gt=0, le=1, description="learning rate at the end of warm-up, for all schedules but 'paper'"
    )
    adam_beta1: Probability = Field(default=0.9, description="Adam (5.3)")
    adam_beta2: Probability = Field(default=0.98, description="Adam (5.3)")
    adam_eps: float = Field(default=1e-9, gt=0, le=1, description="Adam (5.3)")
    label_smoothing: Probability = Field(default=0.1, description="label smoothing (5.4)")
    clip_norm: float = Field(default=0.0, ge=0, description="longest gradient of an update; 0 leaves it (as the paper)")
    accumulate: int = Field(default=1, ge=1, le=10_000, description="batches of an update")
    r_drop: float = Field(default=0.0, ge=0, le=100, description="R-Drop's alpha; 0 is off, 5 is its paper's")
    ema_decay: Probability = Field(
        default=0.0, description="moving average of the weights, kept a step, less at first; 0 is off"
    )
    log_every: int = Field(default=20, ge=1, description="updates between lines of log.jsonl")
    validate_every: int = Field(default=500, ge=1, description="updates between validations")
    decode_dev: int = Field(default=1000, ge=0, description="dev sentences translated at each validation; 0 is none")
    metric: Literal["loss", "bleu", "chrf"] = Field(default="loss", description="what 'better' means on dev")
    patience: int = Field(default=0, ge=0, description="validations without a better one before stopping; 0 is never")
    save_every: int = Field(ge=1, description="updates between checkpoints")
    keep_checkpoints: int = Field(default=5, ge=1, le=1000, description="checkpoints kept, or as many as are averaged")
    average_checkpoints: int = Field(default=5, ge=1, le=1000, description="checkpoints averaged at the end (6.1)")
    average: Literal["last", "best"] = Field(default="last", description="the last ones (6.1), or the best by metric")
    tensorboard: bool = Field(default=False, description="write curves for TensorBoard too; needs headwise[track]")

    @model_validator(mode="after")
    def _agree(self) -> Self:
        problems = []
        if (self.schedule == "paper") != (self.peak_lr is None):
            problems.append("peak_lr goes with every schedule but 'paper', which has a peak of its own")
        if self.schedule in ("cosine", "linear") and self.warmup_steps >= self.max_steps:
            problems.append(f"warmup_steps ({self.warmup_steps}) leaves nothing of max_steps ({self.max_steps})")
        if self.average == "best" and self.save_every % self.validate_every:
            problems.append("average = 'best' needs a validation at each save: save_every a multiple of validate_every")
        if self.metric != "loss" and not self.decode_dev:
            problems.append(f"metric '{self.metric}' needs decode_dev of at least 1")
        if problems:
            raise ValueError("\n".join(problems))
        return self


class SearchConfig(Settings):
    """Decoding (6.1)."""

    beam_size: int = Field(default=4, ge=1, le=1024, description="hypotheses kept; 1 is greedy search")
    length_penalty: PenaltyName = Field(
        default="gnmt",
        description="a sum of log probabilities is divided by ((5+n)/6)^alpha, or n^alpha without or with the end",
    )
    alpha: float = Field(default=0.6, ge=0, le=10, description="strength of the length penalty")
    stop: Literal["finished", "bound"] = Field(
        default="bound", description="after beam_size finished hypotheses, or when provably no better one can come"
    )
    extra_pieces: int = Field(default=50, ge=1, le=100_000, description="output at most source + this many pieces")
    split_pieces: int = Field(
        default=128, ge=8, le=65_536, description="a text of more pieces is translated sentence by sentence"
    )
    split_sentences: bool = Field(default=False, description="so is a shorter one, for what has learned single ones")
    min_pieces: int = Field(default=0, ge=0, le=100_000, description="output at least so many pieces")
    no_repeat: int = Field(default=0, ge=0, le=100, description="so many pieces in a row never come twice; 0 lets them")
    temperature: float = Field(
        default=0.0, ge=0, le=100, description="sample instead of searching; 1 draws as the model says, 0 is off"
    )
    top_k: int = Field(default=0, ge=0, le=MAX_VOCABULARY, description="sample among so many likeliest; 0 is all")
    top_p: float = Field(default=1.0, gt=0, le=1, description="sample among the likeliest of so much probability")
    seed: int = Field(default=1, ge=0, lt=2**31, description="of sampling")


class RunConfig(Settings):
    """Everything about one model: what it is, what it learns from, how it learns, how it decodes."""

    model: ModelConfig
    tokenizer: TokenizerConfig = TokenizerConfig()
    data: DataConfig
    train: TrainConfig
    search: SearchConfig = SearchConfig()

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if not self.tokenizer.joint and self.model.share_embeddings == "three-way":
            raise ValueError(
                "tokenizer.joint is false, so there is no matrix to share three ways: "
                "set model.share_embeddings to 'two-way' or 'none'"
            )
        return self


CORPORA = ("data.train", "data.dev")  # lists of CorpusConfig
S = TypeVar("S", bound=Settings)


def load_config(
    preset: str | None = None,
    file: Path | None = None,
    overrides: Sequence[str] = (),
    flags: Mapping[str, Any] | None = None,
    base: Mapping[str, Any] | None = None,
) -> RunConfig:
    """The whole configuration: preset < run file < flags < overrides ("a.b=c"); a run file may name its preset.

    Without a preset, `base` may stand in for it. The model has the pieces that the tokenizer is told to learn, unless
    it is given a number of its own beside or after that.
    """
    layers: list[tuple[str, Mapping[str, Any]]] = []
    if file is not None:
        content = dict(read_run_file(file))
        named = content.pop("preset", None)
        content.pop("out", None)
        preset = preset or named
        layers.append((f"in {file}", content))
    if preset is not None:
        layers.insert(0, (f"in preset '{preset}'", read_preset(preset)))
    elif base is not None:
        layers.insert(0, ("in the model to begin from", base))
    layers.append(("from the flags", flags or {}))
    layers += [("from --set", parse_override(override)) for override in overrides]

    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    last: dict[str, int] = {}  # the layer that settles a path
    for i, (origin, layer) in enumerate(layers):
        _merge(merged, layer)
        origins.update({path: origin for path in paths_of(layer)})
        last.update({path: i for path in paths_of(layer)})
    where = f"in {file}" if file else "here"
    config = check(RunConfig, merged, origins, where)
    if config.tokenizer.vocab_size and last["tokenizer.vocab_size"] > last["model.vocab_size"]:
        merged["model"]["vocab_size"] = config.tokenizer.vocab_size
        config = check(RunConfig, merged, origins, where)
    return config


def preset_names() -> list[str]:
    """The presets that come with headwise."""
    return sorted(
        f.name.removesuffix(".toml") for f in resources.files("headwise.presets").iterdir() if f.name.endswith(".toml")
    )


def read_preset(name: str) -> dict[str, Any]:
    """The settings of one preset, as written."""
    if not isinstance(name, str) or name not in preset_names():
        raise ConfigError(
            f"unknown preset {name!r}; choose from {', '.join(preset_names())}{hint(str(name), preset_names())}"
        )
    return tomllib.loads(resources.files("headwise.presets").joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def parse_override(override: str) -> dict[str, Any]:
    """`model.d_model=256` as nested settings; the value is TOML, else a string."""
    path, equals, text = override.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError(f"--set {override}: write it as section.name=value, such as model.d_model=256")
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        parsed = {}
    value = parsed["value"] if parsed.keys() == {"value"} else text.strip()
    for key in reversed(keys):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def known_settings(settings: type[Settings] = RunConfig, prefix: str = "") -> dict[str, FieldInfo]:
    """Every setting by its dotted path."""
    known: dict[str, FieldInfo] = {}
    for name, field in settings.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Settings):
            known |= known_settings(kind, f"{prefix}{name}.")
        else:
            known[f"{prefix}{name}"] = field
    return known


def settings_of(config: Settings, prefix: str = "") -> dict[str, Any]:
    """Every setting's value by its dotted path."""
    values: dict[str, Any] = {}
    for name in type(config).model_fields:
        value = getattr(config, name)
        if isinstance(value, Settings):
            values |= settings_of(value, f"{prefix}{name}.")
        else:
            values[f"{prefix}{name}"] = value
    return values


def without_folders(config: RunConfig) -> RunConfig:
    """The same, its files by their names alone: whoever is given a model is not told where its text lay."""
    raw = config.model_dump()
    for corpus in (*raw["data"]["train"], *raw["data"]["dev"]):
        corpus.update({name: Path(corpus[name]).name for name in ("src", "tgt", "pairs") if corpus[name]})
    if raw["train"]["init"]:
        raw["train"]["init"] = Path(raw["train"]["init"]).name
    return check(RunConfig, raw)


def check(settings: type[S], raw: object, origins: Mapping[str, str] | None = None, where: str = "here") -> S:
    """`raw` as settings, or a ConfigError that names every fault, its dotted path and where it came from."""
    try:
        return settings.model_validate(raw)
    except ValidationError as error:
        raise _config_error(error, settings, origins or {}, where) from None


def _config_error(
    error: ValidationError, settings: type[Settings], origins: Mapping[str, str], where: str
) -> ConfigError:
    known = list(known_settings(settings))
    known += [f"{path}.{name}" for path in known for name in CorpusConfig.model_fields if path in CORPORA]
    known += sorted({path.rpartition(".")[0] for path in known} - {""})  # sections may be misspelt too
    lines = [
        line
        for detail in error.errors(include_url=False)
        if detail["type"] != "default_factory_not_called"  # follows from a fault that is listed already
        for line in _explain(detail, known, origins, where)
    ]
    return ConfigError("\n".join(lines))


LIMITS = {  # pydantic's name of a broken limit -> our words, and where the limit stands
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
}
KINDS = {  # pydantic's name of a wrong kind -> what it should be
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "finite_number": "a finite number",
}


def _explain(detail: ErrorDetails, known: list[str], origins: Mapping[str, str], where: str) -> Iterator[str]:
    """One pydantic error in our words."""
    path = ".".join(str(part) for part in detail["loc"] if isinstance(part, str))
    origin = origins.get(path, where)
    value, context = detail["input"], detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            yield f"unknown setting '{path}' {origin}{hint(path, known)}"
        case "missing":
            yield f"missing setting '{path}' {where}; write it, or name a preset ({', '.join(preset_names())})"
        case kind if kind in LIMITS:
            words, name = LIMITS[kind]
            yield f"setting '{path}' is {value!r} {origin}; it must be {words} {context[name]:.12g}"
        case "literal_error":
            choices = _choices(context["expected"])
            yield f"setting '{path}' is {value!r} {origin}; choose from {', '.join(choices)}{hint(str(value), choices)}"
        case "value_error":
            for problem in str(context["error"]).split("\n"):
                yield f"{path}: {problem}" if path else problem
        case "model_type" | "model_attributes_type":
            yield (
                f"'{path}' is {value!r} {origin}; it is a section, not a setting"
                if path
                else f"no table of settings {where}"
            )
        case kind:
            must = f"it must be {KINDS[kind]}" if kind in KINDS else detail["msg"]
            yield f"setting '{path}' is {value!r} {origin}; {must}"


def _choices(expected: str) -> list[str]:
    return [choice.strip("' ") for choice in expected.replace(" or ", ", ").split(", ")]


def hint(name: str, known: Sequence[str]) -> str:
    """`; did you mean 'x'?` for the nearest known name, which may stand in another section."""
    section, _, last = name.rpartition(".")

    def likeness(path: str) -> float:
        its_section, _, its_last = path.rpartition(".")
        return difflib.SequenceMatcher(None, last, its_last).ratio() + 0.1 * (section == its_section)

    nearest = max(known, key=likeness, default="")
    return f"; did you mean '{nearest}'?" if nearest and likeness(nearest) >= 0.7 else ""


def read_run_file(file: Path) -> dict[str, Any]:
    """What stands in a run file, unchecked."""
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no run file {file}") from None
    except OSError as error:
        raise ConfigError(f"cannot read the run file {file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file} is not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from None


def _merge(base: dict[str, Any], layer: Mapping[str, Any]) -> None:
    for key, value in layer.items():
        if isinstance(value, dict):
            inner = base.get(key)
            base[key] = inner if isinstance(inner, dict) else {}
            _merge(base[key], value)
        else:
            base[key] = value


def paths_of(layer: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The dotted path of everything in nested settings, sections included."""
    for key, value in layer.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from paths_of(value, f"{prefix}{key}.")
