"""From which length on does torch's fused kernel beat Equation 1 written out? Settles `auto` (model/attend/auto.py).

python benchmarks/attend_speed.py        about 5 minutes; prints `ratio <case> <speed of fused over reference>`
"""

import argparse
import json
import statistics
from functools import partial
from typing import Any

from protocol import Samples, alternate, report, timed

SHAPES = {"tiny": (4, 32), "base": (8, 64)}  # heads, d_k
LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1024)
TOKENS = 4096  # in a batch, whatever the length
KEYS = (16, 32, 64, 128, 256, 1024)  # that a decoding step looks at
B, K = 64, 4  # sentences and hypotheses of each in a decoding step
ROUNDS = 5
SETTINGS = {"shapes": SHAPES, "lengths": LENGTHS, "tokens": TOKENS, "keys": KEYS, "B": B, "K": K, "rounds": ROUNDS}


def measure(way: str) -> Samples:
    import torch

    from headwise.config import load_config
    from headwise.model.attend import WAYS

    torch.manual_seed(1)
    attend = WAYS[way](load_config("tiny").model)
    samples = {}
    for shape, (heads, width) in SHAPES.items():
        for length in LENGTHS:
            samples |= whole(attend, shape, heads, width, length)
        for n_keys in KEYS:
            samples |= step(attend, shape, heads, width, n_keys)
    return samples


def whole(attend: Any, shape: str, heads: int, width: int, length: int) -> Samples:
    """A batch of sentences at once, forward alone and with backward."""
    import torch

    n = TOKENS // length
    q, k, v = (torch.randn(n, heads, length, width, requires_grad=True) for _ in range(3))
    keep, grad = padding(n, length), torch.randn(n, heads, length, width)
    repeats = 10 if length < 512 else 4
    found = {f"train {shape} {length}": timed(lambda: attend(q, k, v, keep)[0].backward(grad), repeats)}
    with torch.no_grad():
        found[f"forward {shape} {length}"] = timed(partial(attend, q, k, v, keep), repeats)
    return found


def step(attend: Any, shape: str, heads: int, width: int, n_keys: int) -> Samples:
    """One step of beam search: over the cache, laid out as the model's, and over the source."""
    import torch

    with torch.no_grad():
        cache = torch.randn(2, n_keys, B * K, heads, width).permute(0, 2, 3, 1, 4)
        memory = torch.randn(2, B, heads, n_keys, width)
        past = partial(attend, torch.randn(B * K, heads, 1, width), cache[0], cache[1])
        source = partial(attend, torch.randn(B, heads, K, width), memory[0], memory[1], padding(B, n_keys))
        return {f"self-step {shape} {n_keys}": timed(past, 20), f"cross-step {shape} {n_keys}": timed(source, 20)}


def padding(n: int, length: int) -> Any:
    import torch

    return torch.arange(length) < torch.randint(length * 3 // 4, length + 1, (n, 1, 1, 1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contestant")
    if contestant := parser.parse_args().contestant:
        print(json.dumps(measure(contestant)))
    else:
        found = alternate(__file__, ["reference", "fused"], ROUNDS)
        report(__file__, found, SETTINGS)
        for case in found["fused"]:
            ratio = statistics.median(found["reference"][case]) / statistics.median(found["fused"][case])
            print(f"ratio {case.replace(' ', '-')} {ratio:.2f}")
