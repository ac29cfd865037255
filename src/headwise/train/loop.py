"""The loop that learns (5): teacher forcing, one update after another; it never validates, saves or prints."""

import hashlib
import itertools
import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_

from headwise.config import TrainConfig
from headwise.data.batches import Batch, Position
from headwise.model.transformer import Transformer
from headwise.train.distributed import ALONE, Team
from headwise.train.loss import Loss, smoothed_cross_entropy
from headwise.train.r_drop import r_drop
from headwise.train.schedule import learning_rate
from headwise.train.workers import Workers, how_many


@dataclass(frozen=True)
class Update:
    """What one update did."""

    step: int  # counted from 1; a skipped update is counted too
    loss: float  # smoothed, a target piece
    nll: float  # without smoothing, a target piece
    lr: float
    grad_norm: float
    n_tokens: int  # target pieces
    skipped: bool  # the loss or a gradient was not finite, so the weights were left as they were
    batches: tuple[Position, ...]  # what it learned from
    after: Position  # the batch that comes next


def make_optimizer(model: Transformer, config: TrainConfig) -> torch.optim.Adam:
    """Adam (5.3)."""
    betas = (config.adam_beta1, config.adam_beta2)
    return torch.optim.Adam(model.parameters(), lr=0.0, betas=betas, eps=config.adam_eps)


class Teacher(nn.Module):
    """The model with its loss, so that a whole step is one forward pass."""

    def __init__(self, model: Transformer, config: TrainConfig, bfloat16: bool = False) -> None:
        super().__init__()
        self.model, self.smoothing, self.r_drop = model, config.label_smoothing, config.r_drop
        self.in_bfloat16 = bfloat16

    def forward(self, src: Tensor, tgt_in: Tensor, tgt_out: Tensor) -> tuple[Tensor, Tensor]:
        """src `(B, T_src)`, tgt_in and tgt_out `(B, T_tgt)` -> sums over the target pieces, padding left out."""
        output = self.model.output
        weight = output.weight if output.weight is not None else self.model.embedding.weight
        real = tgt_out != self.model.config.pad_id
        with torch.autocast(src.device.type, torch.bfloat16, enabled=self.in_bfloat16):
            if not self.r_drop:
                hidden = self.model.decode(self.model.encode(src), tgt_in)
                return smoothed_cross_entropy(hidden[real], weight, output.bias, tgt_out[real], self.smoothing)
            hidden = self.model.decode(self.model.encode(src.repeat(2, 1)), tgt_in.repeat(2, 1))
            one, two = hidden[: len(src)][real], hidden[len(src) :][real]
            return r_drop(one, two, weight, output.bias, tgt_out[real], self.smoothing, self.r_drop)


def learn(
    model: Transformer,
    optimizer: torch.optim.Optimizer,
    batches: Iterator[Batch],
    config: TrainConfig,
    step: int = 0,
    team: Team = ALONE,
    bfloat16: bool = False,
    n_workers: int | None = None,
) -> Iterator[Update]:
    """An update for every `accumulate` batches, while there are any; `step` is how many came before.

    What is random in a step follows from seed, step and process alone, so that nothing of it has to be kept.
    """
    teacher: nn.Module = Teacher(model, config, bfloat16)
    if team.size > 1:
        teacher = DistributedDataParallel(teacher)
    n_workers = n_workers or how_many(team.device, team.size, bfloat16)
    workers = Workers(list(model.parameters()), n_workers) if n_workers > 1 else None
    while group := list(itertools.islice(batches, config.accumulate)):
        step += 1
        model.train()
        seed = _seed(config.seed, step, team.rank)
        torch.manual_seed(seed)
        lr = learning_rate(step, config, model.config.d_model)
        for parameters in optimizer.param_groups:
            parameters["lr"] = lr
        n_tokens = sum(batch.n_tokens for batch in group)  # over all processes
        sums = [0.0, 0.0]
        for i, batch in enumerate(group):
            if workers:
                loss = workers.backward(partial(_loss, teacher, team), batch, n_tokens, seed + i * n_workers)
            else:
                loss = _backward(teacher, batch, team, n_tokens, last=batch is group[-1])
            sums = [sums[0] + loss.smoothed.item(), sums[1] + loss.nll.item()]
        smoothed, nll = team.sums(sums)
        grad_norm = clip_grad_norm_(model.parameters(), config.clip_norm or math.inf).item()
        skipped = not (math.isfinite(smoothed) and math.isfinite(grad_norm))
        if not skipped:
            optimizer.step()
        optimizer.zero_grad()
        yield Update(
            step=step,
            loss=smoothed / n_tokens,
            nll=nll / n_tokens,
            lr=lr,
            grad_norm=grad_norm,
            n_tokens=n_tokens,
            skipped=skipped,
            batches=tuple(batch.position for batch in group),
            after=group[-1].after,
        )


def _backward(teacher: nn.Module, batch: Batch, team: Team, n_tokens: int, last: bool) -> Loss:
    """Add this process's share of the gradient of the mean over `n_tokens`; the last batch brings all shares together.

    DistributedDataParallel gives the mean over processes, so each counts as many times as there are processes.
    """
    apart = isinstance(teacher, DistributedDataParallel) and not last
    with teacher.no_sync() if apart else nullcontext():  # type: ignore[operator]
        loss = _loss(teacher, team, batch.share(team.rank, team.size))
        torch.autograd.backward(loss.smoothed * (team.size / n_tokens))
    return loss


def _loss(teacher: nn.Module, team: Team, batch: Batch) -> Loss:
    return Loss(*teacher(*tensors(batch, team.device)))


def tensors(batch: Batch, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """src, tgt_in and tgt_out on a device."""
    src, tgt_in, tgt_out = (torch.from_numpy(x).to(device) for x in (batch.src, batch.tgt_in, batch.tgt_out))
    return src, tgt_in, tgt_out


def _seed(*numbers: int) -> int:
    """One number of many; its lower half alone is as good, which is all that torch's generator on a CPU takes."""
    digest = hashlib.blake2b(" ".join(map(str, numbers)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
