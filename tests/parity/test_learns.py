"""From text to text: a tiny model learns to copy, to reverse and to sort digits it has never seen in that order."""

import random

import pytest
import torch

from headwise.config import load_config
from headwise.data.batches import Batches, Position
from headwise.data.corpus import Corpus
from headwise.data.prepared import prepare
from headwise.model.transformer import Transformer
from headwise.search.greedy import greedy
from headwise.search.task import Task
from headwise.text.tokenizer import Tokenizer
from headwise.train.loop import learn, make_optimizer

TASKS = {
    "copy": lambda digits: digits,
    "reverse": lambda digits: digits[::-1],
    "sort": lambda digits: "".join(sorted(digits)),
}
SETTINGS = [
    "tokenizer.kind=characters", "model.n_encoder_layers=2", "model.n_decoder_layers=2", "model.d_model=64",
    "model.d_ff=128", "model.dropout=0.0", "train.peak_lr=0.002", "train.warmup_steps=100", "train.adam_beta2=0.999",
    "data.batch_tokens=1000",
]  # fmt: skip


def strings(n: int, seed: int) -> list[str]:
    choose = random.Random(seed)
    return ["".join(choose.choices("0123456789", k=choose.randint(2, 8))) for _ in range(n)]


@pytest.mark.parametrize("task", TASKS)
def test_learns(task, tmp_path):
    seen = sorted(set(strings(20_000, seed=1)))
    unseen = sorted({text for text in strings(1200, seed=2) if len(text) > 4} - set(seen))[:500]
    (tmp_path / "train.tsv").write_text("".join(f"{text}\t{TASKS[task](text)}\n" for text in seen))

    torch.manual_seed(1)
    corpus = Corpus(tmp_path / "train.tsv")
    config = load_config("tiny", overrides=SETTINGS)
    sides = zip(*corpus.pairs(), strict=True)
    tokenizer = Tokenizer.learn(*sides, config.tokenizer, len(seen))
    batches = Batches(prepare([corpus], tokenizer, tmp_path / "data"), config.data.batch_tokens, seed=1)
    model = Transformer(config.model.model_copy(update={"vocab_size": tokenizer.vocab_size}))
    for update in learn(model, make_optimizer(model, config.train), batches.after(Position()), config.train):
        if update.step == 600:
            break

    ids = [torch.tensor(row) for row in tokenizer.encode_source(unseen)]
    src = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)
    model.eval()
    limits = Task(model.config.bos_id, model.config.eos_id, [20] * len(unseen))
    found = greedy(model.step, model.start(src), limits, config.search)
    right = sum(tokenizer.decode(one.ids) == TASKS[task](text) for one, text in zip(found, unseen, strict=True))
    assert len(unseen) == 500
    assert right / len(unseen) >= 0.99, f"{right} of {len(unseen)}, loss {update.nll:.4f}"
