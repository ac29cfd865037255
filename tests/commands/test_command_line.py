"""The commands as a user types them, in a process of their own."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headwise import __version__
from headwise.architecture import describe, parameters
from headwise.bundle import Bundle
from headwise.config import load_config

SCRIPT = Path(sys.executable).with_name("headwise")


def headwise(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, timeout=60, check=False, **options)


@pytest.fixture
def model(tmp_path) -> Path:
    config = load_config("tiny", overrides=["model.vocab_size=101"])
    rng = np.random.default_rng(1)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in parameters(config.model).items()}
    Bundle(config, weights, stored="int8", said=(0, 1, 2, 3, 7)).write(tmp_path / "model")
    return tmp_path / "model"


def test_help_and_version():
    for arguments in ([], ["--help"]):
        done = headwise(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert "info" in done.stdout
    assert headwise("--version").stdout == f"headwise {__version__}\n"
    done = subprocess.run([sys.executable, "-m", "headwise", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"headwise {__version__}\n"


def test_info_for_a_person():
    done = headwise("info", "base")
    assert (done.returncode, done.stderr) == (0, "")
    for words in ("63,082,496", "18,944,000", "6 + 6", "252.3 MB", "one cached step", "beam 4", "gnmt, alpha 0.6"):
        assert words in done.stdout, words
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


@pytest.mark.parametrize(("preset", "n"), [("base", 63_082_496), ("big", 214_245_376), ("tiny", 2_605_056)])
def test_info_for_a_program(preset, n):
    about = json.loads(headwise("info", preset, "--json").stdout)
    assert about["parameters"]["total"] == n
    assert about["flops"] == describe(load_config(preset).model).flops.model_dump()
    assert about["settings"]["model"]["d_model"] == load_config(preset).model.d_model
    assert {"weights_float32", "weights_int8", "training_state"} <= about["memory"].keys()


def test_info_with_changes_and_run_files(tmp_path):
    changed = json.loads(
        headwise("info", "base", "--set", "model.vocab_size=32000", "--set", "model.d_k=16", "--json").stdout
    )
    assert changed["settings"]["model"]["d_k"] == 16
    (tmp_path / "run.toml").write_text('preset = "small"\n[model]\nn_decoder_layers = 2\n')
    from_file = json.loads(headwise("info", "run.toml", "--json", cwd=tmp_path).stdout)
    assert from_file["settings"]["model"]["n_decoder_layers"] == 2


def test_info_of_a_model_folder(model):
    about = json.loads(headwise("info", str(model), "--json").stdout)
    assert (about["stored"], about["said"]) == ("int8", 5)
    assert about["settings"]["model"]["vocab_size"] == 101
    assert "as stored here" in headwise("info", str(model)).stdout


WRONG = [
    (["inof"], "No such command 'inof'. Did you mean 'info'?"),
    (["info"], "Missing argument 'PRESET_OR_MODEL'."),
    (["info", "bse"], "'bse' is no preset (base, big, small, tiny), no run file and no model; did you mean 'base'?"),
    (["info", "base", "--jsn"], "No such option: --jsn"),
    (["info", "base", "--set"], "Option '--set' requires an argument"),
    (["info", "base", "--set", "model.d_modle=3"], "unknown setting 'model.d_modle' from --set; did you mean 'model.d_model'?"),
    (["info", "base", "--set", "model.d_model=1000000000"], "setting 'model.d_model' is 1000000000 from --set; it must be at most 16384"),
    (["info", "none.toml"], "there is no run file none.toml"),
    (["info", "."], "is not a model folder of headwise"),
    (["info", ".", "--set", "model.d_k=3"], "--set changes presets and run files"),
    (["info", "x" * 300], "cannot use"),
    (["info", "base", "tiny"], "Got unexpected extra argument"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=[" ".join(a)[:40] for a, _ in WRONG])
def test_wrong_invocations(arguments, words, tmp_path):
    done = headwise(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert words in line


def test_debug_shows_the_traceback(tmp_path):
    done = headwise("info", str(tmp_path), "--debug")
    assert "Traceback" in done.stderr
    assert "NotABundle" in done.stderr


def test_a_closed_pipe_is_quiet():
    done = subprocess.run(
        ["bash", "-c", f"'{SCRIPT}' info base | head -c 0; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
