"""Two processes under torchrun (gloo) follow one process on the same batches; stopped, they go on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch  # noqa: F401

from headwise.train.log import read_log

BIN = Path(sys.executable).parent
STEPS = 50


@pytest.fixture
def command(digit_corpus, digit_settings):
    def make(out: Path, *changes: str) -> list[str]:
        parts = [(prefix, kind, side) for prefix, kind in (("", "train"), ("dev-", "dev")) for side in ("src", "tgt")]
        files = [f"--{prefix}{side}={digit_corpus}/{kind}.{side}" for prefix, kind, side in parts]
        overrides = [*digit_settings, "model.dropout=0.0", f"train.max_steps={STEPS}", "train.precision=float32"]
        sets = [part for override in (*overrides, *changes) for part in ("--set", override)]
        return [str(BIN / "headwise"), "train", *files, "--out", str(out), "--preset", "tiny", "--threads", "1", *sets]

    return make


def torchrun(*arguments: str) -> list[str]:
    return [str(BIN / "torchrun"), "--standalone", "--nproc-per-node", "2", "--no-python", *arguments]


def run(arguments: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)


def losses(folder: Path) -> dict[int, float]:
    return {e["step"]: e["loss"] for e in read_log(folder / "log.jsonl") if e["event"] == "step"}


def test_two_follow_one(command, tmp_path):
    """Batches of 9 pairs and of 1, so that a process has an odd share or none; accumulated in twos."""
    changes = ["train.accumulate=2", "data.batch_tokens=33"]
    assert run(command(tmp_path / "one", *changes)).returncode == 0
    done = run(torchrun(*command(tmp_path / "two", *changes)))
    assert done.returncode == 0, done.stderr
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert list(one) == list(two) == list(range(1, STEPS + 1))
    assert one[1] > 1.2 * one[STEPS]  # it learns
    assert max(abs(one[step] - two[step]) / one[step] for step in one) <= 1e-5
    starts = [e for e in read_log(tmp_path / "two" / "log.jsonl") if e["event"] == "start"]
    assert [e["processes"] for e in starts] == [2]  # one process writes


def test_stopped_they_go_on(command, tmp_path):
    unbroken, stopped = tmp_path / "unbroken", tmp_path / "stopped"
    changes = ["model.dropout=0.3", "train.max_steps=40"]
    assert run(torchrun(*command(unbroken, *changes))).returncode == 0
    process = subprocess.Popen(torchrun(*command(stopped, *changes)), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not (stopped / "log.jsonl").exists() or 12 not in losses(stopped)):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert "and saved; the same command goes on from there" in errors
    assert "internal error" not in errors, errors
    assert not (stopped / "model").exists()
    done = run(torchrun(*command(stopped, *changes)))
    assert done.returncode == 0, done.stderr
    assert [e["event"] for e in read_log(stopped / "log.jsonl") if e["event"] == "stopped"] == ["stopped"]
    for name in ("weights.safetensors", "resume/optimizer.safetensors"):
        a, b = (folder / "checkpoints" / "step-00000040" / name for folder in (unbroken, stopped))
        assert a.read_bytes() == b.read_bytes(), name


def test_a_process_that_dies_takes_the_job_with_it_and_nothing_is_lost(command, tmp_path):
    """kill -9 of one rank; torchrun ends the other, and the job goes on from the last checkpoint."""
    out = tmp_path / "run"
    process = subprocess.Popen(
        torchrun(*command(out, "train.max_steps=2000", "train.save_every=10")), stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not (out / "log.jsonl").exists() or 25 not in losses(out)):
        time.sleep(0.01)
    holder = int((out / "lock").read_text().split()[1])
    os.kill(holder, signal.SIGKILL)
    assert process.wait(timeout=60) != 0
    saved = max(int(path.name[5:]) for path in (out / "checkpoints").glob("step-*"))
    assert saved >= 20
    done = run(torchrun(*command(out, f"train.max_steps={saved + 5}")))
    assert done.returncode == 0, done.stderr
    assert json.loads((out / "log.jsonl").read_text().splitlines()[-1])["step"] == saved + 5


@pytest.mark.parametrize("changes", [["data.batch_tokens=0"]])
def test_a_wrong_setting_ends_all_of_them(command, tmp_path, changes):
    done = run(torchrun(*command(tmp_path / "run", *changes)))
    assert done.returncode != 0
    assert "setting 'data.batch_tokens' is 0 from --set; it must be at least 1" in done.stderr


def test_what_the_first_process_refuses_is_no_internal_error_of_the_others(command, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    done = run(torchrun(*command(tmp_path)))
    assert done.returncode != 0
    assert f"error: {tmp_path} holds 'notes.txt' and is no run folder" in done.stderr
    assert "internal error" not in done.stderr
