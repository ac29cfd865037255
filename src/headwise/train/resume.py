"""All that resuming needs, as one object; with the model folder that it lies in, it is a checkpoint."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from headwise.bundle import Bundle
from headwise.data.batches import START, Position
from headwise.errors import BundleDamaged, BundleError
from headwise.model.transformer import Transformer

STATE, TENSORS = "resume/state.json", "resume/optimizer.safetensors"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what Adam remembers of a parameter
RAW = "raw"  # the weights themselves, where the checkpoint's are their moving average


@dataclass(frozen=True)
class State:
    """Where a run stands. What is random follows from seed and step, so there is nothing of it here."""

    step: int = 0
    position: Position = START
    n_tokens: int = 0
    seconds: float = 0.0  # over all sittings
    n_skipped: int = 0
    best: float | None = None  # on dev, by the metric, the higher the better
    since_best: int = 0  # validations
    scores: dict[str, float] = field(default_factory=dict)  # step -> metric, of every validation
    where: dict[str, Any] = field(default_factory=dict)  # threads, processor and so on, which rounding depends on

    def validated(self, value: float) -> "State":
        """After a validation that gave `value`, the higher the better."""
        if self.best is None or value > self.best:
            return replace(self, best=value, since_best=0)
        return replace(self, since_best=self.since_best + 1)


def save(
    folder: Path, bundle: Bundle, state: State, model: Transformer, optimizer: torch.optim.Adam, averaged: bool
) -> None:
    """A checkpoint: `bundle`, and beside it the state, Adam's moments and, if `bundle` is averaged, the weights."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
        remembered: Mapping[str, Tensor] = optimizer.state.get(parameter, {})
        tensors |= {f"{moment}.{name}": remembered[moment].cpu().contiguous() for moment in MOMENTS if remembered}
        if averaged:
            tensors[f"{RAW}.{name}"] = parameter.detach().cpu().contiguous()
    packed = safetensors.torch.save(tensors)
    facts = {**asdict(state), "sha256": {TENSORS: hashlib.sha256(packed).hexdigest()}}
    text = json.dumps(facts)
    facts["sha256"]["state"] = hashlib.sha256(text.encode()).hexdigest()
    bundle.write(folder, more={STATE: json.dumps(facts, indent=1).encode(), TENSORS: packed})


def load(folder: Path, model: Transformer, optimizer: torch.optim.Adam, ema: Transformer | None) -> State:
    """Put everything back as it was; BundleError if a byte of it is not what was written."""
    weights = {name: torch.from_numpy(array) for name, array in Bundle.read(folder).weights.items()}
    try:
        facts = json.loads((folder / STATE).read_bytes())
        own = facts["sha256"].pop("state")
        packed = (folder / TENSORS).read_bytes()
        sound = hashlib.sha256(json.dumps(facts).encode()).hexdigest() == own
        if not sound or hashlib.sha256(packed).hexdigest() != facts.pop("sha256")[TENSORS]:
            raise BundleDamaged(f"{folder} is damaged: what resuming needs is not what was written")
        tensors = safetensors.torch.load(packed)
        state = State(**{**facts, "position": Position(*facts["position"])})
    except OSError as error:
        raise BundleError(f"cannot read {error.filename or folder}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, safetensors.SafetensorError) as error:
        raise BundleDamaged(f"{folder} is damaged: {error}") from None
    if ema is not None:
        ema.load_state_dict(weights)
        weights = {name: tensors[f"{RAW}.{name}"] for name in weights}
    model.load_state_dict(weights)
    names = [name for name, _ in model.named_parameters()]
    remembered = {
        i: {moment: tensors[f"{moment}.{name}"] for moment in MOMENTS}
        for i, name in enumerate(names)
        if f"step.{name}" in tensors
    }
    optimizer.load_state_dict({"state": remembered, "param_groups": optimizer.state_dict()["param_groups"]})
    return state


def peek(folder: Path) -> State:
    """Where a checkpoint stands, without its tensors; BundleError if that cannot be read."""
    try:
        facts = json.loads((folder / STATE).read_bytes())
        facts.pop("sha256")
        return State(**{**facts, "position": Position(*facts["position"])})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BundleDamaged(f"{folder} cannot be resumed from: {error}") from None
