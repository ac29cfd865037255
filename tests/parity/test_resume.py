"""A run that is cut and gone on with is the unbroken run, to the last bit of weights, moments, averages and patience."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from headwise.train.log import read_log
from headwise.train.run import train
from headwise.train.stop import Stop

STEPS = 48
RECIPE = ["train.accumulate=2", "train.ema_decay=0.9", "train.patience=50", "model.dropout=0.3"]


def checkpoint(folder: Path, step: int = STEPS) -> dict[str, object]:
    """Everything of a checkpoint but how long it took."""
    here = folder / "checkpoints" / f"step-{step:08d}"
    state = json.loads((here / "resume" / "state.json").read_text())
    del state["seconds"], state["sha256"]
    names = ("weights.safetensors", "resume/optimizer.safetensors")
    return {"state": state, **{name: (here / name).read_bytes() for name in names}}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def config(digit_config):
    return lambda *changes: digit_config(*RECIPE, f"train.max_steps={STEPS}", *changes)


@pytest.fixture(scope="module")
def unbroken(config, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    state = train(config(), folder, threads=1)
    assert state.step == STEPS
    assert state.position.epoch >= 3  # so that cuts fall into several epochs
    return folder


@pytest.mark.parametrize("cut", [1, 5, 7, 11, 13, 21, 35, 47])
def test_cut_at_a_step(config, unbroken, tmp_path, cut):
    """Before and after saves and validations (every 5 and 7), inside and between epochs, on a new limit."""
    train(config(f"train.max_steps={cut}"), tmp_path / "run", threads=1)
    assert (tmp_path / "run" / "model").is_dir()
    train(config(), tmp_path / "run", threads=1)
    assert checkpoint(tmp_path / "run") == checkpoint(unbroken)
    assert (tmp_path / "run/model/weights.safetensors").read_bytes() != (
        tmp_path / "run/model-1/weights.safetensors"
    ).read_bytes()
    steps = [e for e in read_log(tmp_path / "run" / "log.jsonl") if e["event"] == "step"]
    expected = [e for e in read_log(unbroken / "log.jsonl") if e["event"] == "step"]
    assert [(e["step"], e["loss"]) for e in steps] == [(e["step"], e["loss"]) for e in expected]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_cut_by_a_signal(config, unbroken, tmp_path, number):

    def tell(event):
        if event["event"] == "step" and event["step"] == 23:
            os.kill(os.getpid(), number)

    with Stop() as stop:
        state = train(config(), tmp_path / "run", threads=1, tell=tell, stop=stop)
        assert (stop.number, state.step) == (number, 23)
    assert not (tmp_path / "run" / "model").exists()
    train(config(), tmp_path / "run", threads=1)
    assert checkpoint(tmp_path / "run") == checkpoint(unbroken)
    assert (tmp_path / "run/model/weights.safetensors").read_bytes() == (
        unbroken / "model/weights.safetensors"
    ).read_bytes()


def test_cut_by_kill_9(config, unbroken, tmp_path):
    """Between two saves: at most one interval is lost, and the log tells what was gone back on."""
    script = f"""
import json, os, signal, sys
from pathlib import Path
from headwise.config import RunConfig, check
from headwise.train.run import train
settings = check(RunConfig, json.loads(sys.stdin.read()))
def tell(event):
    if event["event"] == "step" and event["step"] == 33:
        os.kill(os.getpid(), signal.SIGKILL)
train(settings, Path({str(tmp_path / "run")!r}), threads=1, tell=tell)
"""
    given = json.dumps(config().model_dump())
    done = subprocess.run([sys.executable, "-c", script], input=given, text=True, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    saved = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert saved[-1] == "step-00000030"
    told = []
    train(config(), tmp_path / "run", threads=1, tell=told.append)
    assert [e["step"] for e in told if e["event"] == "resume"] == [30]
    assert checkpoint(tmp_path / "run") == checkpoint(unbroken)
    logged = [e["step"] for e in read_log(tmp_path / "run" / "log.jsonl") if e["event"] == "step"]
    assert logged == list(range(1, STEPS + 1))


def test_killed_again_and_again_no_checkpoint_is_ever_unreadable(config, unbroken, tmp_path):
    """kill -9 at moments of chance, as often as the run takes; it ends as the unbroken one."""
    script = "import json, sys\nfrom pathlib import Path\nfrom headwise.config import RunConfig, check\nfrom headwise.train.run import train\n"
    script += f"train(check(RunConfig, json.loads(sys.stdin.read())), Path({str(tmp_path / 'run')!r}), threads=1)"
    given = json.dumps(config().model_dump())
    n_killed = 0
    for attempt in range(12):
        process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(given.encode())
        process.stdin.close()
        log = tmp_path / "run" / "log.jsonl"
        before = log.stat().st_size if log.exists() else 0
        while process.poll() is None and attempt < 4:
            if log.exists() and log.stat().st_size > before + 600 * (attempt + 1):  # some steps on
                process.kill()
                n_killed += 1
                break
            time.sleep(0.002)
        if process.wait() == 0:
            break
        assert process.returncode == -signal.SIGKILL, process.stderr.read()
        process.stderr.close()
    assert n_killed >= 3
    assert process.returncode == 0
    assert checkpoint(tmp_path / "run") == checkpoint(unbroken)
    assert not list((tmp_path / "run").rglob("*.tmp"))


def test_a_damaged_checkpoint_is_told_and_the_one_before_it_is_taken(config, unbroken, tmp_path):
    for i, name in enumerate(["weights.safetensors", "resume/optimizer.safetensors", "resume/state.json"]):
        folder = tmp_path / str(i)
        shutil.copytree(unbroken, folder)
        shutil.rmtree(folder / "model")
        victim = folder / "checkpoints" / f"step-{STEPS:08d}" / name
        data = bytearray(victim.read_bytes())
        data[len(data) // 2] ^= 1
        victim.write_bytes(data)
        told = []
        train(config(), folder, threads=1, tell=told.append)
        assert [e["step"] for e in told if e["event"] == "resume"] == [45]
        assert any("damaged" in e["message"] for e in told if e["event"] == "warning"), told


def test_other_threads_are_a_warning(config, unbroken, tmp_path):
    shutil.copytree(unbroken, tmp_path / "run")
    told = []
    train(config(f"train.max_steps={STEPS + 1}"), tmp_path / "run", threads=2, tell=told.append)
    assert any("threads was 1 and is 2" in e["message"] for e in told if e["event"] == "warning")


def test_segmentations_are_drawn_once(config, tmp_path):
    """With BPE dropout, cut and gone on with: the same, because what was drawn is kept with the data."""
    changes = ["tokenizer.kind=bpe", "tokenizer.vocab_size=310", "tokenizer.bpe_dropout=0.5", "tokenizer.n_samples=3"]
    train(config(*changes, "train.max_steps=3"), tmp_path / "a", threads=1)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    train(config(*changes, "train.max_steps=30"), tmp_path / "a", threads=1)
    for limit in (9, 30):
        train(config(*changes, f"train.max_steps={limit}"), tmp_path / "b", threads=1)
    assert checkpoint(tmp_path / "a", 30) == checkpoint(tmp_path / "b", 30)
