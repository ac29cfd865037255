"""A whole run: corpus -> tokenizer -> batches -> loop -> model folder; run again, it goes on where it stood."""

import copy
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from headwise import __version__
from headwise.bundle import Bundle, find_model
from headwise.config import RunConfig, SearchConfig, load_config, without_folders
from headwise.data.batches import Batch, Batches, Position
from headwise.data.corpus import directions
from headwise.data.prepared import open_prepared
from headwise.errors import BundleError, InputError, TrainingError
from headwise.machine import processor
from headwise.model.transformer import Transformer
from headwise.text.tokenizer import Tokenizer
from headwise.train import resume
from headwise.train.allocator import keep_memory
from headwise.train.average import average, follow
from headwise.train.card import card_of
from headwise.train.distributed import Team, gathered
from headwise.train.folder import RunFolder
from headwise.train.log import Log, Tell
from headwise.train.loop import Teacher, Update, learn, make_optimizer, tensors
from headwise.train.precision import wants_bfloat16
from headwise.train.report import write_report
from headwise.train.resume import State
from headwise.train.setup import DevPair, dev_pairs, said, set_up
from headwise.train.stop import Stop
from headwise.train.tensorboard import tensorboard
from headwise.train.validate import Validation, validate

MAX_SKIPPED = 5  # updates in a row that may fail before the run stops
PROBE_CELLS = 2048  # of the batch that the time is estimated with


def train(
    config: RunConfig,
    folder: Path,
    device: str = "auto",
    threads: int | None = None,
    tell: Tell = lambda event: None,
    stop: Stop | None = None,
) -> State:
    """Train in `folder` until a limit is reached or a signal comes; what was there before is gone on from.

    Under torchrun every process calls this; the first one writes and tells, the others follow.
    """
    stop = stop or Stop()
    keep_memory()
    has_cuda = torch.cuda.is_available()
    if device == "cuda" and not has_cuda:
        raise InputError("there is no CUDA device that torch can use; leave --device out")
    place = ("cuda" if has_cuda else "cpu") if device == "auto" else device
    with gathered(place) as team:
        torch.set_num_threads(threads or max(1, len(os.sched_getaffinity(0)) // team.size))
        run_folder = RunFolder(folder)
        if not team.first:
            team.largest(0)
            return Run(run_folder, team, Log(None, lambda event: None), stop).go()
        with run_folder.locked():
            log = Log(run_folder.log_file, tell)
            set_up(config, run_folder, log)
            team.largest(0)
            return Run(run_folder, team, log, stop).go()


@dataclass
class Run:
    """One sitting of a run whose folder is set up: everything is read from there."""

    folder: RunFolder
    team: Team
    log: Log
    stop: Stop

    def go(self) -> State:
        """To the end, or to a signal."""
        self.config = load_config(file=self.folder.run_file)
        if self.folder.model.exists() and (reason := self._limit(state := self._glance())):
            self.log.write("finished", reason=reason, step=state.step, model=str(self.folder.model))
            return state
        self._open()
        state = self._where_it_stands()
        reason = self._limit(state)
        if reason is None:
            if self.team.first and (aside := self.folder.put_model_aside()):
                self.log.write("warning", message=f"the finished model is now {aside}")
            if not state.step:
                self._estimate()
            state, reason = self._learn(state)
        if self.stop.number:
            return state
        if self.team.first:
            self._finish(state, reason)
        self.team.largest(0)
        return state

    def _open(self) -> None:
        """Everything that the folder says: settings, tokenizer, data, and a model to begin with."""
        train, data = self.config.train, self.config.data
        self.bfloat16 = wants_bfloat16(train, self.team.device)
        self.tokenizer = Tokenizer.from_text(self.folder.tokenizer_file.read_text(encoding="utf-8"))
        prepared = open_prepared(self.folder.data / "train")
        self.batches = Batches(
            prepared, data.batch_tokens, train.seed, [c.weight for c in directions(data.train, data)]
        )
        self.dev = Batches(open_prepared(self.folder.data / "dev"), data.batch_tokens, seed=0, shuffle=False)
        self.dev_pairs = dev_pairs(self.folder, train.decode_dev)
        self.said = said(self.folder)
        torch.manual_seed(train.seed)
        if train.init and not self.folder.saved():
            self.model = Transformer.from_arrays(self.config.model, Bundle.read(find_model(train.init)).weights)
        else:
            self.model = Transformer(self.config.model)
        self.model.to(self.team.device)
        self.ema = copy.deepcopy(self.model) if train.ema_decay else None
        self.optimizer = make_optimizer(self.model, train)
        self.where = {
            "threads": torch.get_num_threads(),
            "processes": self.team.size,
            "processor": processor(),
            "torch": torch.__version__,
            "precision": "bfloat16" if self.bfloat16 else "float32",
        }
        n_bytes = sum(p.numel() for p in self.model.parameters()) * 4
        if self.team.first:
            most = max(train.keep_checkpoints, train.average_checkpoints)
            kept = min(most, train.max_steps // train.save_every + 1)
            self.folder.need_room(n_bytes * (kept + 2 + 2 * 3), largest_file=3 * n_bytes)
            self.writer = tensorboard(self.folder.tensorboard) if train.tensorboard else None
        self.log.write(
            "start",
            version=__version__,
            device=str(self.team.device),
            **self.where,
            parameters=n_bytes // 4,
            pairs=len(prepared),
            dev_pairs=len(self.dev.prepared),
            left_out={"empty": prepared.n_empty, "long": prepared.n_long},
            vocabulary=self.tokenizer.vocab_size,
            batches_an_epoch=len(self.batches.epoch(0)),
            padding=round(self.batches.padding(), 4),
            max_steps=train.max_steps,
            max_minutes=train.max_minutes,
        )

    def _glance(self) -> State:
        """Where the newest checkpoint stands; nothing of it is loaded yet."""
        saved = self.folder.saved()
        try:
            return resume.peek(saved[-1]) if saved else State()
        except BundleError:
            return State()

    def _where_it_stands(self) -> State:
        """At the newest checkpoint that can be read, which the first process finds, or at the beginning."""
        state = self._newest() if self.team.first else State()
        step = self.team.largest(state.step)
        if step and not self.team.first:
            state = resume.load(self.folder.checkpoint(step), self.model, self.optimizer, self.ema)
        return replace(state, where=self.where)

    def _newest(self) -> State:
        """Load the newest checkpoint that can be read; one that cannot is told of and renamed."""
        for checkpoint in reversed(self.folder.saved()):
            if not (checkpoint / "resume").exists():
                continue
            try:
                state = resume.load(checkpoint, self.model, self.optimizer, self.ema)
            except BundleError as error:
                aside = self.folder.put_aside(checkpoint)
                self.log.write("warning", message=f"{error}; it is now {aside.name}, and the one before it is taken")
                continue
            self.log.write("resume", step=state.step, checkpoint=checkpoint.name)
            for name, value in self.where.items():
                if (before := state.where.get(name)) != value:
                    message = f"{name} was {before} and is {value}: the run goes on, but not bit for bit"
                    self.log.write("warning", message=message)
            return state
        if any(self.folder.checkpoints.iterdir()):
            raise TrainingError(f"none of the checkpoints in {self.folder.checkpoints} can be resumed from")
        return State()

    def _limit(self, state: State) -> str | None:
        """Which limit the run has reached, if any."""
        train = self.config.train
        if state.step >= train.max_steps:
            return f"max_steps {train.max_steps}"
        if train.max_epochs is not None and state.position.epoch >= train.max_epochs:
            return f"max_epochs {train.max_epochs}"
        if train.max_minutes is not None and state.seconds >= 60 * train.max_minutes:
            return f"max_minutes {train.max_minutes:g}"
        if train.patience and state.since_best >= train.patience:
            return f"patience {train.patience}"
        return None

    def _estimate(self) -> None:
        """How long it will take, from the fastest of three passes over a small batch; the weights stay."""
        batch = _at_most(next(self.batches.after(Position())), PROBE_CELLS)
        teacher = Teacher(self.model, self.config.train, self.bfloat16)
        self.model.train()
        seconds = math.inf
        for _ in range(3):
            began = time.perf_counter()
            teacher(*tensors(batch, self.team.device))[0].backward()
            seconds = min(seconds, time.perf_counter() - began)
        self.optimizer.zero_grad()
        train = self.config.train
        rate = batch.n_tokens / seconds * self.team.size
        plan = self.batches.epoch(0)
        lengths = self.batches.prepared.tgt.lengths()
        an_epoch = sum(int(lengths[rows].sum()) for rows in plan)
        n_batches = train.max_steps * train.accumulate
        if train.max_epochs is not None:
            n_batches = min(n_batches, train.max_epochs * len(plan))
        minutes = n_batches / len(plan) * an_epoch / rate / 60
        self.log.write("estimate", minutes=round(min(minutes, train.max_minutes or math.inf), 1), tokens_a_second=rate)

    def _learn(self, state: State) -> tuple[State, str]:
        """Update after update, with logs, validations and checkpoints in between."""
        train = self.config.train
        batches = self.batches.after(state.position, train.max_epochs)
        updates = learn(self.model, self.optimizer, batches, train, state.step, self.team, self.bfloat16)
        self.stop.gentle = True
        began, before, reason = time.perf_counter(), state.seconds, None
        meter = Meter()
        in_a_row = 0
        saved = state.step
        for update in updates:
            meter.add(update)
            in_a_row = in_a_row + 1 if update.skipped else 0
            if update.skipped:
                self._name(update, in_a_row, saved)
            elif self.ema is not None:
                follow(self.ema, self.model, train.ema_decay, update.step)
            state = replace(
                state,
                step=update.step,
                position=update.after,
                n_tokens=state.n_tokens + update.n_tokens,
                seconds=before + time.perf_counter() - began,
                n_skipped=state.n_skipped + update.skipped,
            )
            if update.step % train.log_every == 0:
                self._log_step(update, meter, state)
                meter = Meter()
            if update.step % train.validate_every == 0:
                with meter.paused():
                    state = self._validate(state)
                state = replace(state, seconds=before + time.perf_counter() - began)
            reason = self._limit(state) if self.team.first else None
            over = self.team.largest(self.stop.number or int(reason is not None))  # no signal has the number 1
            if (update.step % train.save_every == 0 or over) and not in_a_row:
                self._save(state)
                saved = update.step
            if over:
                self.stop.number = over if over > 1 else 0
                break
        self.stop.gentle = False
        if self.stop.number:
            self.log.write("stopped", signal=self.stop.number, step=state.step)
            if self.team.first:
                write_report(self.folder, self.config)
        return state, reason or "max_epochs"

    def _name(self, update: Update, in_a_row: int, saved: int) -> None:
        """Say which batches an update was skipped for; after several in a row, stop at what was saved before."""
        skipped = []
        for position in update.batches:
            pairs = self.batches.epoch(position.epoch)[position.batch] % len(self.batches.prepared)
            skipped.append({"epoch": position.epoch, "batch": position.batch, "pairs": pairs[:10].tolist()})
        self.log.write("skipped", step=update.step, loss=str(update.loss), in_a_row=in_a_row, batches=skipped)
        if in_a_row >= MAX_SKIPPED:
            sound = f"checkpoint {self.folder.checkpoint(saved)} is sound" if saved else "there is no checkpoint yet"
            raise TrainingError(
                f"{in_a_row} updates in a row, up to step {update.step}, gave a loss or a gradient that is not finite; "
                f"{sound}; start a new run from it with --init and a lower train.peak_lr, or with train.clip_norm=1"
            )

    def _log_step(self, update: Update, meter: "Meter", state: State) -> None:
        facts = {
            "step": update.step,
            "epoch": update.batches[-1].epoch,
            "loss": meter.loss / meter.n_tokens,
            "nll": meter.nll / meter.n_tokens,
            "lr": update.lr,
            "grad_norm": update.grad_norm,
            "tokens_a_second": meter.n_tokens / (time.perf_counter() - meter.began),
            "n_tokens": state.n_tokens,
            "minutes": state.seconds / 60,
        }
        self.log.write("step", **{name: _plain(value) for name, value in facts.items()})
        self._draw(update.step, {f"train/{name}": facts[name] for name in ("loss", "nll", "lr", "tokens_a_second")})

    def _validate(self, state: State) -> State:
        """Only the first process; the others wait for it where the limits are looked at."""
        if not self.team.first:
            return state
        greedy = self.config.search.model_copy(update={"beam_size": 1})
        found = self._validation(self.ema or self.model, greedy, self.dev_pairs)
        value = found.value(self.config.train.metric)
        state = state.validated(value)
        state = replace(state, scores={**state.scores, str(state.step): value})
        facts = {"loss": found.loss, "perplexity": found.perplexity}
        facts |= {score.name: score.value for score in found.scores}
        self.log.write(
            "validation",
            step=state.step,
            **{name: _plain(fact) for name, fact in facts.items()},
            signatures={score.name: score.signature for score in found.scores},
            samples=found.samples,
            minutes=_plain(state.seconds / 60),
            better=state.since_best == 0,
        )
        self._draw(state.step, {f"dev/{name}": value for name, value in facts.items()})
        return state

    def _validation(self, model: Transformer, search: SearchConfig, pairs: Sequence[DevPair]) -> Validation:
        return validate(model, self.said, self.config, self.tokenizer, self.dev, pairs, search, self.bfloat16)

    def _save(self, state: State) -> None:
        """A checkpoint, written by the first process; those that are no longer needed go."""
        if not self.team.first:
            return
        train = self.config.train
        path = self.folder.checkpoint(state.step)
        if not path.exists():
            weights = (self.ema or self.model).to_arrays()
            bundle = Bundle(without_folders(self.config), weights, self.tokenizer.to_text(), said=self.said)
            resume.save(path, bundle, state, self.model, self.optimizer, averaged=self.ema is not None)
        n = max(train.keep_checkpoints, train.average_checkpoints)
        self.folder.prune({*self._regular(state)[-n:], *self._to_average(state)})
        self.log.write("checkpoint", step=state.step, checkpoint=path.name)

    def _regular(self, state: State) -> list[Path]:
        """The checkpoints that an unbroken run has too: those of a signal or of an earlier limit are left out."""
        every = self.config.train.save_every
        return [
            path
            for path in self.folder.saved()
            if (step := self.folder.step_of(path)) == state.step or not step % every
        ]

    def _to_average(self, state: State) -> list[Path]:
        """The last ones, or the best by the metric."""
        train, regular = self.config.train, self._regular(state)
        if train.average == "best":
            scored = [path for path in regular if str(self.folder.step_of(path)) in state.scores]
            regular = sorted(scored, key=lambda path: state.scores[str(self.folder.step_of(path))]) or regular
        return regular[-train.average_checkpoints :]

    def _finish(self, state: State, reason: str) -> None:
        """Average checkpoints, translate dev as users will, and write the model and the report."""
        chosen = self._to_average(state)
        weights = average(chosen)
        model = Transformer.from_arrays(self.config.model, weights).to(self.team.device)
        every = dev_pairs(self.folder, None)
        found = self._validation(model, self.config.search, every)
        facts = {
            "reason": reason,
            "step": state.step,
            "minutes": _plain(state.seconds / 60),
            "n_tokens": state.n_tokens,
            "averaged": sorted(map(self.folder.step_of, chosen)),
            "loss": _plain(found.loss),
            "perplexity": _plain(found.perplexity),
            "scores": {score.name: [_plain(score.value), score.signature] for score in found.scores},
            "samples": found.samples,
        }
        card = card_of(self.config, facts, n_pairs=len(self.batches.prepared), n_dev=len(every))
        bundle = Bundle(without_folders(self.config), weights, self.tokenizer.to_text(), card, said=self.said)
        bundle.write(self.folder.model)
        self.log.write("end", **facts, model=str(self.folder.model), report=str(self.folder.report))
        write_report(self.folder, self.config)

    def _draw(self, step: int, values: dict[str, float]) -> None:
        if self.team.first and self.writer is not None:
            for name, value in values.items():
                self.writer.add_scalar(name, value, step)
            self.writer.flush()


class Meter:
    """Sums since the last line of the log."""

    def __init__(self) -> None:
        self.loss = self.nll = 0.0
        self.n_tokens = 0
        self.began = time.perf_counter()

    def add(self, update: Update) -> None:
        """One update more."""
        self.loss += update.loss * update.n_tokens
        self.nll += update.nll * update.n_tokens
        self.n_tokens += update.n_tokens

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Time that does not count as learning."""
        began = time.perf_counter()
        yield
        self.began += time.perf_counter() - began


def _at_most(batch: Batch, cells: int) -> Batch:
    n = max(1, cells // max(batch.src.shape[1], batch.tgt_in.shape[1]))
    return replace(batch, src=batch.src[:n], tgt_in=batch.tgt_in[:n], tgt_out=batch.tgt_out[:n])


def _plain(value: float) -> float | str:
    """A number that JSON has, in six digits unless it is a count; NaN and Inf as words."""
    if isinstance(value, int):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else str(value)
