"""Limits, patience, averages, what is not finite, and everything else that a run decides."""

import json
import math
import shutil

import numpy as np
import pytest
import torch

from headwise.bundle import Bundle, find_model
from headwise.config import RunConfig
from headwise.errors import ConfigError, FolderError, MissingExtra, NotABundle, TrainingError
from headwise.model.transformer import Transformer
from headwise.text.tokenizer import Tokenizer
from headwise.train import loop, run
from headwise.train.log import read_log
from headwise.train.precision import wants_bfloat16
from headwise.train.run import train


@pytest.fixture(autouse=True)
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def events(folder, kind):
    return [e for e in read_log(folder / "log.jsonl") if e["event"] == kind]


def test_epochs_end_a_run(digit_config, tmp_path):
    state = train(digit_config("train.max_epochs=2", "train.accumulate=3"), tmp_path / "run", threads=1)
    n = events(tmp_path / "run", "start")[0]["batches_an_epoch"]
    assert (state.position.epoch, state.position.batch, state.step) == (2, 0, math.ceil(2 * n / 3))
    assert events(tmp_path / "run", "end")[0]["reason"] == "max_epochs 2"


def test_minutes_end_a_run_over_all_sittings(digit_config, tmp_path):
    state = train(digit_config("train.max_minutes=0.01"), tmp_path / "run", threads=1)
    assert 0.6 <= state.seconds < 30
    again = train(digit_config("train.max_minutes=0.01"), tmp_path / "run", threads=1)
    assert (again.step, len(events(tmp_path / "run", "finished"))) == (state.step, 1)


@pytest.mark.parametrize("metric", ["loss", "bleu", "chrf"])
def test_patience_ends_a_run(digit_config, tmp_path, monkeypatch, metric):
    """By the metric that was chosen: the second validation is the best, two more without a better one end it."""
    made = iter([3.0, 1.0, 2.0, 1.5, 0.1, 0.1])  # losses; the scores are their negatives
    real = run.validate

    def validate(*arguments):
        found, loss = real(*arguments), next(made)
        scores = [run_score.__class__(run_score.name, -loss, "") for run_score in found.scores]
        return found.__class__(loss, tuple(scores), ())

    monkeypatch.setattr(run, "validate", validate)
    changes = ["train.patience=2", "train.validate_every=2", f"train.metric={metric}", "train.save_every=2"]
    state = train(
        digit_config(*changes, "train.average=best", "train.average_checkpoints=1"), tmp_path / "run", threads=1
    )
    assert (state.step, state.best, state.since_best) == (8, -1.0, 2)
    end = events(tmp_path / "run", "end")[0]
    assert (end["reason"], end["averaged"]) == ("patience 2", [4])
    best = Bundle.read(tmp_path / "run/checkpoints/step-00000004").weights
    model = Bundle.read(tmp_path / "run/model").weights
    assert all(np.array_equal(best[name], model[name]) for name in best)


def test_checkpoints_that_are_kept(digit_config, tmp_path):
    """As many as are kept or averaged, the better ones too; the last two can be resumed from."""
    train(
        digit_config("train.max_steps=40", "train.keep_checkpoints=2", "train.average_checkpoints=3"),
        tmp_path / "run",
        threads=1,
    )
    saved = sorted((tmp_path / "run" / "checkpoints").iterdir())
    assert [path.name for path in saved] == ["step-00000030", "step-00000035", "step-00000040"]
    assert [(path / "resume").exists() for path in saved] == [False, True, True]
    assert events(tmp_path / "run", "end")[0]["averaged"] == [30, 35, 40]


def test_a_moving_average_by_hand(digit_config, tmp_path):
    """A checkpoint's weights are the average; the weights themselves lie with what resuming needs."""
    import safetensors.numpy

    settings = ["train.ema_decay=0.2", "train.save_every=1", "train.keep_checkpoints=9", "train.max_steps=2"]
    train(digit_config(*settings), tmp_path / "run", threads=1)
    torch.manual_seed(1)
    before = Transformer(Bundle.read(tmp_path / "run/model").config.model).to_arrays()
    expected = before
    for step, kept in ((1, 2 / 11), (2, 0.2)):  # at first less than it is to be
        here = tmp_path / "run" / "checkpoints" / f"step-{step:08d}"
        raw = safetensors.numpy.load((here / "resume" / "optimizer.safetensors").read_bytes())
        expected = {name: kept * array + (1 - kept) * raw[f"raw.{name}"] for name, array in expected.items()}
        for name, array in Bundle.read(here).weights.items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-7)


def poisoned(passes: set[int]) -> type[loop.Teacher]:
    """A teacher whose loss is NaN in these passes, counted from 1."""

    class Poisoned(loop.Teacher):
        count = 0

        def forward(self, *batch):
            Poisoned.count += 1
            smoothed, nll = super().forward(*batch)
            return smoothed * (math.nan if Poisoned.count in passes else 1.0), nll

    return Poisoned


def test_a_batch_that_is_not_finite_is_named_and_skipped(digit_config, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "Teacher", poisoned({4, 6}))
    state = train(digit_config("train.max_steps=10"), tmp_path / "run", threads=1)
    assert (state.step, state.n_skipped) == (10, 2)
    skipped = events(tmp_path / "run", "skipped")
    assert [e["step"] for e in skipped] == [4, 6]
    assert skipped[0]["batches"][0]["batch"] == 3
    assert skipped[0]["batches"][0]["pairs"]
    steps = events(tmp_path / "run", "step")
    assert all(math.isfinite(e["loss"]) for e in steps if e["step"] not in (4, 6))
    assert all(np.isfinite(array).all() for array in Bundle.read(tmp_path / "run/model").weights.values())


def test_several_in_a_row_stop_at_what_was_sound(digit_config, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "Teacher", poisoned(set(range(8, 99))))
    with pytest.raises(TrainingError, match=r"5 updates in a row, up to step 12, .*step-00000005 is sound; .* --init"):
        train(digit_config("train.max_steps=30"), tmp_path / "run", threads=1)
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-00000005"]
    monkeypatch.undo()
    assert train(digit_config("train.max_steps=30"), tmp_path / "run", threads=1).step == 30  # from there


def test_r_drop_and_clipping_run(digit_config, tmp_path):
    state = train(
        digit_config("train.r_drop=5.0", "train.clip_norm=1.0", "train.max_steps=60"), tmp_path / "run", threads=1
    )
    losses = [e["nll"] for e in events(tmp_path / "run", "step")]
    assert state.n_skipped == 0
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])


def test_bfloat16_only_where_it_is_native(digit_config):
    config = digit_config("train.precision=bfloat16").train
    cpu = torch.device("cpu")
    native = wants_bfloat16(digit_config().train, cpu)
    if native:
        assert wants_bfloat16(config, cpu)
    else:
        with pytest.raises(ConfigError, match="no instructions for; use 'auto'"):
            wants_bfloat16(config, cpu)
    assert not wants_bfloat16(digit_config("train.precision=float32").train, cpu)


def test_a_step_in_bfloat16_learns(digit_config, tmp_path, monkeypatch):
    """Slow where it is not native, but right: the loss stays beside that of float32."""
    monkeypatch.setattr(run, "wants_bfloat16", lambda *_: True)
    train(digit_config("train.max_steps=25"), tmp_path / "half", threads=1)
    monkeypatch.undo()
    train(digit_config("train.max_steps=25", "train.precision=float32"), tmp_path / "full", threads=1)
    half, full = ([e["nll"] for e in events(tmp_path / name, "step")] for name in ("half", "full"))
    assert half != full
    np.testing.assert_allclose(half, full, rtol=0.03)


def test_tensorboard_or_how_to_get_it(digit_config, tmp_path):
    config = digit_config("train.tensorboard=true", "train.max_steps=7")
    try:
        import tensorboard  # noqa: F401
    except ModuleNotFoundError:
        with pytest.raises(MissingExtra, match=r"pip install 'headwise\[track\]'"):
            train(config, tmp_path / "run", threads=1)
    else:
        train(config, tmp_path / "run", threads=1)
        assert list((tmp_path / "run" / "tensorboard").iterdir())


def test_dev_is_not_learned_from_twice_over(digit_config, tmp_path):
    """The log tells what was checked: dev pairs that stand in train are a warning."""
    train(digit_config("train.max_steps=1"), tmp_path / "run", threads=1)
    check = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[0])
    assert (check["event"], check["pairs"], check["dev_pairs"]) == ("check", 150, 20)


def test_subwords_are_learned_from_both_sides(digit_config, tmp_path):
    (tmp_path / "pairs.tsv").write_text("".join(f"wordsource {i}\twortziel {i}\n" for i in range(60)))
    config = digit_config("tokenizer.kind=bpe", "tokenizer.vocab_size=400", "train.max_steps=1")
    data = {**config.data.model_dump(), "train": [{"pairs": str(tmp_path / "pairs.tsv")}], "dev": []}
    train(RunConfig(**{**config.model_dump(), "data": data}), tmp_path / "run", threads=1)
    tokenizer = Tokenizer.from_text((tmp_path / "run" / "tokenizer.json").read_text())
    assert [len(ids) for ids in tokenizer.encode_source(["wordsource", "wortziel"])] == [2, 2]  # a piece and the end


def test_checkpoints_without_their_run_file_are_not_gone_on_from(digit_config, tmp_path):
    train(digit_config("train.max_steps=5"), tmp_path / "run", threads=1)
    (tmp_path / "run" / "run.toml").unlink()
    with pytest.raises(FolderError, match=r"holds checkpoints but no run\.toml; put it back"):
        train(digit_config("train.max_steps=9"), tmp_path / "run", threads=1)
    assert (tmp_path / "run" / "checkpoints" / "step-00000005").is_dir()


def test_a_run_folder_stands_for_its_model_or_its_newest_checkpoint(digit_config, tmp_path):
    train(digit_config("train.max_steps=7"), tmp_path / "run", threads=1)
    assert find_model(tmp_path / "run") == tmp_path / "run" / "model"
    assert find_model(tmp_path / "run" / "model") == tmp_path / "run" / "model"
    shutil.rmtree(tmp_path / "run" / "model")
    assert find_model(tmp_path / "run").name == "step-00000007"
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    with pytest.raises(NotABundle, match="has no checkpoint yet; go on with: headwise train --out"):
        find_model(tmp_path / "run")


def test_a_model_does_not_tell_where_its_text_lay(digit_config, tmp_path):
    train(digit_config("train.max_steps=5"), tmp_path / "run", threads=1)
    train(digit_config("train.max_steps=5", f"train.init={tmp_path}/run"), tmp_path / "further", threads=1)
    for folder in (tmp_path / "further" / "model", tmp_path / "further" / "checkpoints" / "step-00000005"):
        config = Bundle.read(folder).config
        assert (config.data.train[0].src, config.data.dev[0].tgt, config.train.init) == ("train.src", "dev.tgt", "run")
        assert str(tmp_path) not in "".join((folder / name).read_text() for name in ("config.json", "tokenizer.json"))
