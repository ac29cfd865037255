"""headwise translate, evaluate and score as a user types them, on a model that has learned nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest

from headwise import load
from headwise.cli.lines import stream
from headwise.cli.main import main

SCRIPT = Path(sys.executable).with_name("headwise")
FAST = ["--engine", "ctranslate2", "--compute-type", "float32"]


@pytest.fixture
def inside(tmp_path, capsys, monkeypatch):
    """In this process: exit code, standard output, standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.chdir(tmp_path)
        code = main(arguments)
        return code, *capsys.readouterr()

    return run


def piped(babbler, text: bytes, *arguments: str) -> list[str]:
    command = [SCRIPT, "translate", "--model", babbler, *FAST, *arguments]
    done = subprocess.run(command, input=text, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().split("\n")


def test_a_text(babbler, inside):
    code, out, err = inside("translate", "the quick brown fox", "--model", str(babbler), *FAST, "--debug")
    assert code == 0
    assert out.count("\n") == 1
    assert err.startswith("engine ctranslate2 float32: asked for\n")


def test_one_of_the_users_models_by_its_name(babbler, inside, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWISE_HOME", str(tmp_path / "home"))
    shutil.copytree(babbler, tmp_path / "home" / "models" / "mine")
    by_path, by_name = (inside("translate", "the dog", "--model", one, *FAST) for one in (str(babbler), "mine"))
    assert by_path == by_name
    assert inside("translate", "the dog", "--model", "yours", *FAST)[0] == 2


def test_loops_are_counted(babbler, inside):
    long = ["--set", "search.beam_size=1", "--set", "search.min_pieces=60", "--set", "search.extra_pieces=60"]
    code, out, err = inside("translate", "the dog", "--model", str(babbler), *FAST, *long)
    assert (code, out.count("\n"), err) == (0, 1, "loops mended: 1 (--json tells where)\n")


def test_a_person_at_a_terminal_gets_an_answer_to_each_line(babbler):
    ours, theirs = os.openpty()
    command = [SCRIPT, "translate", "--model", babbler, *FAST]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE) as process:
        assert process.stdout
        for text in (b"the quick brown fox", b"a b c"):
            os.write(ours, text + b"\n")
            assert process.stdout.readline().endswith(b"\n")  # before the end of the input
        os.write(ours, b"\x04")
        assert process.wait(timeout=60) == 0


def test_lines_one_to_one(babbler):
    """Blank lines, a line of 100 kB, characters that break lines elsewhere, no line feed at the end."""
    long = "the quick brown fox jumps over the lazy dog. " * 2_300
    lines = ["the dog", "", "  ", "a\u2028b\u0085c\x0bd\x0ce", long, "🦊" * 3, "\x00\x01", "last"]
    out = piped(babbler, "\n".join(lines).encode())
    assert len(out) == len(lines) + 1
    assert out[-1] == ""
    assert (out[1], out[2]) == ("", "  ")


@pytest.mark.parametrize(("line", "n_lines"), [(b"a line of text\n", 50_000), (b"a" * 2**20 + b"\n", 64)])
def test_a_file_of_any_size_takes_no_more_memory(line, n_lines):
    left = iter([line] * n_lines)
    source = SimpleNamespace(isatty=lambda: False, readline=lambda: next(left, b""))
    tracemalloc.start()
    with open(os.devnull, "wb") as sink:
        *_, done = stream(source, sink, Path("<stdin>"), lambda done, texts: [[text] for text in texts])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert done == n_lines
    assert peak < 2**23


def test_n_best_alignments_and_json(babbler):
    lines = b"the quick brown fox\n\na lazy dog\n"
    best = piped(babbler, lines, "--n-best", "2")
    assert [line.split(" ||| ")[0] for line in best[:-1]] == ["0", "0", "1", "2", "2"]
    assert all(len(line.split(" ||| ")) == 3 for line in best[:-1])
    aligned = piped(babbler, lines, "--alignments")
    assert len(aligned) == 4
    assert all(" ||| " in line for line in aligned[:-1])
    both = piped(babbler, lines, "--n-best", "2", "--alignments")
    assert [line.rsplit(" ||| ", 1)[0] for line in both[:-1]] == best[:-1]
    assert [both[i].split(" ||| ")[3] for i in (0, 3)] == [aligned[i].split(" ||| ")[1] for i in (0, 2)]
    objects = [json.loads(line) for line in piped(babbler, lines, "--json")[:-1]]
    assert [one["id"] for one in objects] == [0, 1, 2]
    assert objects[0]["source"] == "the quick brown fox"
    assert {"text", "score", "log_prob", "parts", "complete", "loop", "pieces", "alignment"} <= objects[0].keys()
    assert [*objects[0]["alternatives"][0]] == ["text", "score", "log_prob", "pieces", "alignment"]


@pytest.mark.parametrize("more", [[], ["--n-best", "3"]])
def test_killed_and_resumed_it_is_the_unbroken_file(babbler, tmp_path, more):
    words = ["the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog"]
    lines = [" ".join(words[(i + j) % 8] for j in range(i % 7 + 1)) if i % 50 else "" for i in range(2500)]
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    command = [SCRIPT, "translate", "--model", babbler, *FAST, "--input", "in.txt", *more]
    subprocess.run([*command, "--output", "whole.txt"], cwd=tmp_path, check=True, capture_output=True, timeout=300)
    out, n_kills = tmp_path / "out.txt", 0
    while n_kills < 2:
        size = out.stat().st_size if out.exists() else 0
        running = subprocess.Popen(
            [*command, "--output", "out.txt", "--resume"], cwd=tmp_path, stderr=subprocess.DEVNULL
        )
        while running.poll() is None and (out.stat().st_size if out.exists() else 0) <= size:
            time.sleep(0.002)
        if running.poll() is not None:
            break
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        n_kills += 1
        with out.open("ab") as handle:
            handle.write(b"12 ||| half a li" if more else b"half a li")
    assert n_kills >= 1
    subprocess.run(
        [*command, "--output", "out.txt", "--resume"], cwd=tmp_path, check=True, capture_output=True, timeout=300
    )
    assert out.read_bytes() == (tmp_path / "whole.txt").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.txt", "out.txt", "whole.txt"]


def test_nothing_is_overwritten_and_what_differs_is_named(babbler, inside, tmp_path):
    (tmp_path / "in.txt").write_text("the dog\n")
    (tmp_path / "out.txt").write_text("mine\n")
    arguments = ["translate", "--model", str(babbler), *FAST, "--input", "in.txt", "--output", "out.txt"]
    assert inside(*arguments)[::2] == (2, "error: out.txt is there already; choose another name, or move it away\n")
    said = "error: out.txt is finished, or was not written by headwise; choose another name\n"
    assert inside(*arguments, "--resume")[::2] == (2, said)
    (tmp_path / ".out.txt.unfinished").write_text('{"input": "0"}')
    assert inside(*arguments)[::2] == (2, "error: out.txt is there already; add --resume to go on, or move it away\n")
    said = (
        "error: out.txt was begun with another input and model and search and choice of options; choose another name\n"
    )
    assert inside(*arguments, "--resume")[::2] == (2, said)
    assert (tmp_path / "out.txt").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["text", "--input", "x"], "a text goes without --input and --output"),
        (["--resume"], "--resume needs --input and --output"),
        (["--input", "missing.txt"], "cannot read missing.txt: No such file or directory"),
        (["text", "--json", "--n-best", "2"], "--json gives all alternatives anyway; leave --n-best out"),
        (["text", "--to", "fr"], "this model has no target language 'fr'; it knows und"),
        (["text", "--from", "Klingon"], "this model has no source language 'Klingon'; it knows und"),
        (["text", "--engine", "marian"], "there is no engine 'marian'; choose from auto, torch, ctranslate2"),
    ],
)
def test_wrong_arguments(babbler, inside, arguments, said):
    code, _, err = inside("translate", "--model", str(babbler), *arguments)
    assert (code, err) == (2, f"error: {said}\n")


def test_a_prefix(babbler, inside):
    pytest.importorskip("torch")
    code, out, err = inside("translate", "the dog", "--model", str(babbler), "--prefix", "Zwölf", "--debug")
    assert (code, err) == (0, "engine torch: asked for\n")
    assert out.startswith("Zwölf")
    code, _, err = inside("translate", "the dog", "--model", str(babbler), "--prefix", "Zwölf", *FAST)
    assert (code, err) == (2, "error: the engine ctranslate2 has no prefix in a beam; use --engine torch\n")


def test_evaluate_and_score(babbler, inside, tmp_path):
    pytest.importorskip("sacrebleu")
    (tmp_path / "a.tsv").write_text("the dog\tder Hund\tein Hund\nfox\tFuchs\n")
    code, out, _ = inside("evaluate", str(babbler), "--pairs", "a.tsv", *FAST[:2])
    names = [line.split()[0] for line in out.splitlines()]
    assert code == 0
    assert names[:6] == ["BLEU", "chrF2", "TER", "exact", "CER", "token"]
    (tmp_path / "s").write_text("the dog\nfox\n")
    (tmp_path / "t").write_text("der Hund\nFuchs\n")
    code, out, err = inside("score", str(babbler), "--src", "s", "--tgt", "t", *FAST[:2])
    assert code == 0
    log_probs = [float(line.split("\t")[0]) for line in out.splitlines()]
    assert len(log_probs) == 2
    assert err.startswith(f"2 pairs: log probability {sum(log_probs):.2f}, perplexity ")
    assert inside("score", str(babbler), "--src", "s")[::2] == (2, "error: give --src and --tgt, or --pairs\n")


def test_without_a_name_it_is_the_model_in_the_box(inside, babbler, tmp_path, monkeypatch):
    monkeypatch.setattr("headwise.home.box", lambda: tmp_path / "box")
    said = "error: name a model with --model DIR; headwise models list shows those that have a name\n"
    assert inside("translate", "text") == (2, "", said)
    shutil.copytree(babbler, tmp_path / "box" / "en-de")
    named = inside("translate", "text", "--model", str(babbler), *FAST)
    assert named[0] == 0
    assert inside("translate", "text", *FAST) == named
    assert load(engine="ctranslate2", compute_type="float32").translate("text").text == named[1].removesuffix("\n")
