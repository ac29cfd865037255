"""The learning rate of every step (5.3)."""

from math import sqrt

from headwise.config import TrainConfig


def learning_rate(step: int, config: TrainConfig, d_model: int) -> float:
    """Of update `step`, counted from 1: a straight rise over warmup_steps, then a fall with the root of the step.

    paper         d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5), Equation 3
    inverse-sqrt  the same curve through peak_lr at the end of the warm-up
    """
    peak = config.peak_lr if config.peak_lr is not None else 1 / sqrt(d_model * config.warmup_steps)
    return peak * min(sqrt(config.warmup_steps / step), step / config.warmup_steps)
