"""The learning rate of every step (5.3)."""

from math import cos, pi, sqrt

from headwise.config import TrainConfig


def learning_rate(step: int, config: TrainConfig, d_model: int) -> float:
    """Of update `step`, counted from 1: a straight rise over warmup_steps, then as the schedule says.

    paper         d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5), Equation 3
    inverse-sqrt  the same curve through peak_lr at the end of the warm-up
    cosine        from peak_lr along half a wave to 0 at max_steps
    linear        from peak_lr in a straight line to 0 at max_steps
    constant      peak_lr
    """
    warmup = config.warmup_steps
    peak = config.peak_lr if config.peak_lr is not None else 1 / sqrt(d_model * warmup)
    if step <= warmup:
        return peak * step / warmup
    match config.schedule:
        case "paper" | "inverse-sqrt":
            return peak * sqrt(warmup / step)
        case "constant":
            return peak
    left = max(0.0, (config.max_steps - step) / (config.max_steps - warmup))  # from 1 to 0
    return peak * left if config.schedule == "linear" else peak * (1 - cos(pi * left)) / 2
