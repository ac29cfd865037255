"""headwise models and headwise doctor as a user types them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwise.cli.main import main

SCRIPT = Path(sys.executable).with_name("headwise")
FAST = ["--engine", "ctranslate2", "--compute-type", "float32"]


@pytest.fixture
def typed(tmp_path, capsys, monkeypatch):
    """In this process: exit code, standard output, standard error."""
    monkeypatch.setenv("HEADWISE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("headwise.home.files", lambda package: tmp_path / "package")  # with an empty box
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        return code, *capsys.readouterr()

    return run


def test_from_adding_to_removing(babbler, typed, tmp_path):
    nothing = "no models yet; add one with: headwise models add DIR\n"
    assert typed("models", "list") == typed("models", "verify") == (0, nothing, "")
    assert typed("models", "list", "--json") == (0, "[]\n", "")

    code, out, err = typed("models", "add", str(babbler), "--name", "mine")
    assert (code, out) == (0, "")
    added, use = err.splitlines()
    assert added.startswith("added mine: und -> und, ")
    assert use == 'headwise translate --model mine "..."'

    code, out, err = typed("models", "list")
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines() if line.strip(" ─")]
    assert rows[0] == ["name", "languages", "parameters", "size", "stored", "where"]
    assert rows[1][:4] == ["mine", "und", "->", "und"]
    assert rows[1][-2:] == ["float32", "yours"]
    [told] = json.loads(typed("models", "list", "--json")[1])
    assert (told["name"], told["origin"], told["folder"]) == (
        "mine",
        "yours",
        str(tmp_path / "home" / "models" / "mine"),
    )

    assert typed("models", "verify") == typed("models", "verify", "mine") == (0, "mine: ok\n", "")
    by_name, by_path = (typed("translate", "the dog", "--model", model, *FAST) for model in ("mine", str(babbler)))
    assert by_name == by_path
    assert json.loads(typed("info", "mine", "--json")[1])["stored"] == "float32"

    assert typed("models", "remove", "mine", "--yes") == (0, "", "removed mine\n")
    assert typed("models", "list") == (0, nothing, "")
    assert os.listdir(tmp_path / "home" / "models") == os.listdir(tmp_path / "home" / "ctranslate2") == []


def test_a_damaged_one(babbler, typed, tmp_path):
    for name in ("good", "[red]bad", "bad"):
        assert typed("models", "add", str(babbler), "--name", name)[0] == 0
    os.truncate(tmp_path / "home" / "models" / "bad" / "weights.safetensors", 9)
    code, out, _ = typed("models", "list")
    assert code == 0
    assert "[red]bad " in out
    [row] = [line for line in out.splitlines() if line.split()[:1] == ["bad"]]
    assert row.split()[1] == "damaged"
    assert out.endswith("headwise models verify tells what is damaged\n")
    code, out, _ = typed("models", "verify")
    assert code == 2
    assert [line.split(": ")[0] for line in out.splitlines()] == ["[red]bad", "bad", "good"]
    assert "weights.safetensors is truncated: 9 bytes" in out
    assert typed("models", "verify", "good") == (0, "good: ok\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["models", "remove", "mien"], "there is no model 'mien'; did you mean 'mine'?"),
        (["models", "remove", "mine"], "there is nobody to ask: remove mine"),
        (["models", "remove", "../models/mine", "--yes"], "there is no model '../models/mine'"),
        (["models", "verify", "mien"], "there is no model 'mien'; did you mean 'mine'?"),
        (["models", "add", "."], "is not a model folder of headwise: there is no manifest.json"),
        (["models", "add", "mine"], "there is a model 'mine' already; give another name with --name, or first: headwise"),
        (["models", "add", "mine", "--name", "a/b"], "'a/b' is no name for a model"),
        (["models", "add", "mien"], "there is no model 'mien'; did you mean 'mine'?"),
        (["models", "lst"], "No such command 'lst'"),
        (["translate", "x", "--model", "mien"], "there is no model 'mien'; did you mean 'mine'?"),
        (["info", "mien"], "'mien' is no preset (base, big, small, tiny), no run file and no model; did you mean 'mine'?"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_line(babbler, typed, tmp_path, monkeypatch, arguments, said):
    assert typed("models", "add", str(babbler), "--name", "mine")[0] == 0
    with open(os.devnull) as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        code, out, err = typed(*arguments)
    assert (code, out) == (2, "")
    [line] = err.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert os.listdir(tmp_path / "home" / "models") == ["mine"]


@pytest.mark.parametrize(("answer", "left", "said"), [(b"\n", ["mine"], "mine stays"), (b"y\n", [], "removed mine")])
def test_a_person_is_asked(babbler, typed, tmp_path, answer, left, said):
    assert typed("models", "add", str(babbler), "--name", "mine")[0] == 0
    ours, theirs = os.openpty()
    os.write(ours, answer)
    done = subprocess.run(
        [SCRIPT, "models", "remove", "mine"], stdin=theirs, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.startswith("remove mine (")
    assert "B)? [y/N]" in done.stderr
    assert done.stderr.endswith(f"{said}\n")
    assert os.listdir(tmp_path / "home" / "models") == left


def test_doctor(babbler, typed, tmp_path, monkeypatch):
    typed("models", "add", str(babbler), "--name", "mine")
    code, out, err = typed("doctor")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].startswith("problems: 0, notes: ")
    assert max(map(len, out.splitlines())) <= 80
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "home" / "models" / "mine" / "config.json").unlink()
    code, out, _ = typed("doctor", "--json")
    [problem] = [finding for finding in json.loads(out) if finding["level"] == "problem"]
    assert (code, problem["part"], problem["name"]) == (2, "models", "mine")
    assert problem["remedy"] == "headwise models remove mine, and add it again"
    assert typed("doctor")[1].splitlines()[-1].startswith("problems: 1, notes: ")
