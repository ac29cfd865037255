"""The loop that learns (5): teacher forcing, one update after another; it never validates, saves or prints."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.nn.utils import clip_grad_norm_

from headwise.config import TrainConfig
from headwise.data.batches import Batch
from headwise.model.transformer import Transformer
from headwise.train.loss import Loss, smoothed_cross_entropy
from headwise.train.schedule import learning_rate


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


def make_optimizer(model: Transformer, config: TrainConfig) -> torch.optim.Adam:
    """Adam (5.3)."""
    betas = (config.adam_beta1, config.adam_beta2)
    return torch.optim.Adam(model.parameters(), lr=0.0, betas=betas, eps=config.adam_eps)


def learn(
    model: Transformer, optimizer: torch.optim.Optimizer, batches: Iterator[Batch], config: TrainConfig, step: int = 0
) -> Iterator[Update]:
    """An update a batch, for as long as the caller takes them and there are batches; `step` is how many came before."""
    for batch in batches:
        step += 1
        model.train()
        lr = learning_rate(step, config, model.config.d_model)
        for group in optimizer.param_groups:
            group["lr"] = lr
        loss = loss_of(model, batch, config.label_smoothing)
        torch.autograd.backward(loss.smoothed / batch.n_tokens)
        grad_norm = clip_grad_norm_(model.parameters(), config.clip_norm or math.inf).item()
        skipped = not (math.isfinite(loss.smoothed.item()) and math.isfinite(grad_norm))
        if not skipped:
            optimizer.step()
        optimizer.zero_grad()
        n = batch.n_tokens
        yield Update(step, loss.smoothed.item() / n, loss.nll.item() / n, lr, grad_norm, n, skipped)


def loss_of(model: Transformer, batch: Batch, smoothing: float = 0.0) -> Loss:
    """The sums of the loss over the target pieces of a batch; padding costs nothing."""
    device = model.embedding.weight.device
    src, tgt_in, tgt_out = (torch.from_numpy(x).to(device) for x in (batch.src, batch.tgt_in, batch.tgt_out))
    hidden = model.decode(model.encode(src), tgt_in)
    real = tgt_out != model.config.pad_id
    weight = model.output.weight if model.output.weight is not None else model.embedding.weight
    return smoothed_cross_entropy(hidden[real], weight, model.output.bias, tgt_out[real], smoothing)
