"""The demo's folder: dates to learn from, the run that learns them, and what it knows of dates that it never saw."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headwise.atomic import new_folder, write_text
from headwise.config import RunConfig, load_config
from headwise.demo.dates import Part, pairs
from headwise.engine.torch import TorchEngine
from headwise.errors import FolderError
from headwise.explain.heads import Heads, heads, sharpest
from headwise.explain.heatmap import in_svg
from headwise.loading import load
from headwise.train.log import Tell
from headwise.train.resume import State
from headwise.train.run import train
from headwise.train.stop import Stop

SIZES: dict[Part, int] = {"train": 30_000, "dev": 300, "test": 1000}  # pairs
STEPS, MINUTES = 1200, 1.5  # at most
MAP_WIDTH = 30  # characters of the source at most
RECIPE = [  # where it differs from tiny
    "tokenizer.kind=characters",
    "model.d_model=64",
    "model.d_ff=128",
    "model.n_encoder_layers=2",
    "model.n_decoder_layers=2",
    "model.norm=pre",
    "model.positions=rotary",
    "model.dropout=0.0",  # nothing is seen often enough to be learned by heart
    "data.batch_tokens=1024",
    "data.source_lang=en",
    "train.warmup_steps=150",
    "train.peak_lr=0.004",
    "train.label_smoothing=0.0",
    "train.log_every=10",
    "train.validate_every=200",
    "train.decode_dev=100",
    "train.save_every=50",  # a few seconds are the most that a kill costs
    "train.average_checkpoints=4",
    "search.beam_size=1",
    "search.extra_pieces=5",  # an ISO date has ten characters, and the shortest source has ten
]


@dataclass(frozen=True)
class Example:
    """A date of the test, and what the model makes of it."""

    source: str
    expected: str
    output: str

    @property
    def right(self) -> bool:
        """To the character."""
        return self.output == self.expected


class Demo:
    """A folder with train.tsv, dev.tsv, test.tsv, run/ and attention.svg."""

    def __init__(self, folder: Path, seed: int = 1, steps: int = STEPS) -> None:
        self.folder, self.seed, self.steps = folder, seed, steps
        self.run = folder / "run"
        self.test = folder / "test.tsv"
        self.picture = folder / "attention.svg"

    @property
    def config(self) -> RunConfig:
        """The settings of the run; more steps than usual may take more time."""
        files = {part: [{"pairs": str(self.folder / f"{part}.tsv")}] for part in ("train", "dev")}
        minutes = MINUTES * max(1.0, self.steps / STEPS)
        limits = {"seed": self.seed, "max_steps": self.steps, "max_minutes": minutes}
        return load_config("tiny", flags={"data": files, "train": limits}, overrides=RECIPE)

    def learn(self, threads: int, tell: Tell, stop: Stop) -> State:
        """Write the dates, or see that they are there, and train; what was there before is gone on from."""
        self._prepare()
        return train(self.config, self.run, "auto", threads, tell, stop)

    def ask(self, threads: int = 1) -> tuple[list[Example], Heads]:
        """What the model makes of every date of the test, and where it looks for one of them, drawn as a picture."""
        asked = pairs("test", SIZES["test"], self.seed)
        translator = load(self.run, engine="torch", threads=threads)
        found = translator.translate([source for source, _ in asked])
        examples = [Example(*pair, one.text) for pair, one in zip(asked, found, strict=True)]
        shown = telling(examples)
        assert isinstance(translator.engine, TorchEngine)
        view = sharpest(heads(translator.engine.model, translator.tokenizer, shown.source, shown.output))
        write_text(self.picture, in_svg(view))
        return examples, view

    def _prepare(self) -> None:
        """Nothing is written where anything is, and nothing else is trained on."""
        texts = {f"{part}.tsv": _lines(pairs(part, n, self.seed)) for part, n in SIZES.items()}
        if not self.folder.is_dir() or not any(self.folder.iterdir()):
            with new_folder(self.folder) as temporary:
                for name, text in texts.items():
                    (temporary / name).write_text(text, encoding="utf-8")
        for name, text in texts.items():
            file = self.folder / name
            if not file.is_file() or file.read_bytes() != text.encode():
                raise FolderError(
                    f"{file} is not that of a demo with seed {self.seed}; choose another folder with --out"
                )


def telling(examples: Sequence[Example]) -> Example:
    """The one whose map has the most to show: right, and the longest that fits beside others on a page."""
    return max(examples, key=lambda one: (one.right, len(one.source) <= MAP_WIDTH, len(one.source)))


def _lines(pairs: Sequence[tuple[str, str]]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in pairs)
