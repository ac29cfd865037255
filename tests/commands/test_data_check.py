"""headwise data check, as a user types it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).with_name("headwise")


@pytest.fixture
def files(tmp_path) -> Path:
    (tmp_path / "train.en").write_text("one cat\n\ntwo [bold]dogs\n")
    (tmp_path / "train.de").write_text("eine Katze\nleer\nzwei Hunde\n")
    (tmp_path / "short.de").write_text("eine Katze\n")
    (tmp_path / "pairs.tsv").write_text("one\teins\ntwo\tzwei\none\teins\n")
    return tmp_path


def check(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    command = [SCRIPT, "data", "check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60, check=False)


def test_warnings_are_exit_0(files):
    done = check(files, "--src", "train.en", "--tgt", "train.de")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2 pairs with two sides\n")
    assert "warning empty side 1\n          train.en:2\n          such pairs are left out\n" in done.stdout
    assert done.stdout.endswith("errors: 0, warnings: 1\n")


def test_errors_are_exit_2(files):
    done = check(files, "--src", "train.en", "--tgt", "short.de")
    assert done.returncode == 2
    assert "error   unequal lines 1\n          train.en has 3 lines, short.de has 1: parallel" in done.stdout


def test_for_programs_and_several_corpora(files):
    done = check(
        files, "--src", "train.en", "--tgt", "train.de", "--pairs", "pairs.tsv", "--dev-pairs", "pairs.tsv", "--json"
    )
    about = json.loads(done.stdout)
    assert (about["n_train"], about["n_dev"]) == (5, 3)
    assert {f["name"]: f["count"] for f in about["findings"] if f["count"]} == {
        "empty side": 1,
        "duplicate pairs": 1,
        "dev pairs in train": 3,
    }


@pytest.mark.parametrize(("arguments", "words"), [
    ([], "nothing to check: give --src and --tgt, or --pairs"),
    (["--src", "train.en"], "--src is given 1 times and --tgt 0 times: they go together"),
    (["--pairs", "pairs.tsv", "--dev-tgt", "x"], "--dev-src is given 0 times and --dev-tgt 1 times: they go together"),
])  # fmt: skip
def test_wrong_invocations(arguments, words, files):
    done = check(files, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {words}\n")
