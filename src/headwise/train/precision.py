"""Where bfloat16 is native, and so pays."""

import platform

import torch

from headwise.config import TrainConfig
from headwise.errors import ConfigError


def wants_bfloat16(config: TrainConfig, device: torch.device) -> bool:
    """Whether matrix products run in bfloat16; asked for where it is not native, that is a ConfigError."""
    has_it = native(device)
    if config.precision == "bfloat16" and not has_it:
        raise ConfigError(
            f"train.precision is 'bfloat16', which this machine ({device.type}) has no instructions for; use 'auto'"
        )
    return has_it and config.precision != "float32"


def native(device: torch.device) -> bool:
    """Whether there are instructions for it."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if platform.machine() in ("aarch64", "arm64"):
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return bool(torch.cpu._is_avx512_bf16_supported())
