"""headwise train, init, translate and evaluate as a user types them."""

import contextlib
import fcntl
import gzip
import json
import os
import pty
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from headwise.bundle import Bundle
from headwise.cli.main import main
from headwise.data.prepared import open_prepared

SCRIPT = Path(sys.executable).with_name("headwise")
SMALL = [
    "model.d_model=16",
    "model.d_ff=19",
    "model.n_heads=2",
    "model.n_encoder_layers=1",
    "model.n_decoder_layers=1",
    "tokenizer.kind=characters",
    "data.batch_tokens=200",
    "train.max_steps=12",
    "train.save_every=5",
    "train.validate_every=6",
    "train.warmup_steps=5",
    "train.log_every=2",
]
SETS = [part for setting in SMALL for part in ("--set", setting)] + ["--threads", "1"]


def headwise(folder: Path, *arguments: str, text: bytes = b"", **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [SCRIPT, *arguments], cwd=folder, input=text, capture_output=True, timeout=120, check=False, **options
    )


@pytest.fixture
def inside(corpus, capsys, monkeypatch):
    """The same in this process, where torch is loaded already: exit code and what went to standard error."""

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.chdir(corpus)
        code = main(arguments)
        return code, capsys.readouterr().err

    threads = torch.get_num_threads()
    yield run
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    random.seed(3)
    for name, n in (("train", 300), ("dev", 20)):
        texts = ["".join(random.choices("0123456789", k=random.randint(1, 9))) for _ in range(n)]
        (folder / f"{name}.en").write_text("".join(f"{text}\n" for text in texts))
        (folder / f"{name}.de").write_text("".join(f"{text[::-1]}\n" for text in texts))
        (folder / f"{name}.tsv.gz").write_bytes(gzip.compress("".join(f"{t}\t{t[::-1]}\n" for t in texts).encode()))
    return folder


FILES = ["--src", "train.en", "--tgt", "train.de", "--dev-src", "dev.en", "--dev-tgt", "dev.de"]


@pytest.fixture(scope="module")
def finished(corpus) -> Path:
    done = headwise(corpus, "train", *FILES, "--out", "runs/a", *SETS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    return corpus / "runs" / "a"


def test_one_command_from_text_to_model(finished):
    names = {path.name for path in finished.iterdir()}
    assert names == {"run.toml", "log.jsonl", "tokenizer.json", "data", "checkpoints", "model", "report.html", "lock"}
    assert sorted(path.name for path in (finished / "checkpoints").iterdir()) == [
        f"step-{step:08d}" for step in (5, 10, 12)
    ]
    assert [(p / "resume").exists() for p in sorted((finished / "checkpoints").iterdir())] == [False, True, True]
    bundle = Bundle.read(finished / "model")
    assert (bundle.config.data.source_lang, bundle.config.data.target_lang) == ("en", "de")
    assert bundle.config.model.vocab_size == 14
    assert "# en to de" in bundle.card
    assert re.search(r"BLEU [\d.]+, `nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:", bundle.card)
    assert tomllib.loads((finished / "run.toml").read_text())["train"]["max_steps"] == 12
    events = [json.loads(line) for line in (finished / "log.jsonl").read_text().splitlines()]
    kinds = [e["event"] for e in events]
    assert kinds[:3] == ["check", "start", "estimate"]  # a time estimate before the first step
    assert kinds.count("step") == 6
    assert kinds.count("validation") == 2
    assert kinds[-1] == "end"
    assert {"loss", "perplexity", "BLEU", "chrF2", "signatures", "samples"} <= next(
        e for e in events if e["event"] == "validation"
    ).keys()
    page = (finished / "report.html").read_text()
    assert page.count("<svg") == 4
    assert "<script" not in page


def test_both_ways_in_one_model(corpus, inside):
    both = ["--set", "data.both_ways=true", "--set", "data.copies.lower=0.5"]
    assert inside("train", *FILES, "--out", "runs/both", *SETS, *both)[0] == 0
    bundle = Bundle.read(corpus / "runs" / "both" / "model")
    assert bundle.config.model.vocab_size == 16  # with a tag for each direction
    assert "# en to de, and back" in bundle.card
    events = [json.loads(line) for line in (corpus / "runs/both/log.jsonl").read_text().splitlines()]
    assert next(e for e in events if e["event"] == "start")["pairs"] == 600  # no digit has a lower case
    assert {"BLEU", "BLEU de", "BLEU en", "chrF2 de"} <= next(e for e in events if e["event"] == "validation").keys()
    assert inside("translate", "123", "--model", "runs/both", "--to", "English", "--engine", "torch")[0] == 0
    assert inside("train", *FILES, "--out", "runs/both", *SETS, *both)[0] == 0  # finished
    code, told = inside("train", *FILES, "--out", "runs/both", *SETS, "--set", "data.both_ways=false")
    assert code == 2
    assert "data.both_ways was True and is now False" in told
    plain = ["--pairs", "train.tsv.gz", "--dev-pairs", "dev.tsv.gz", "--out", "runs/nowhere"]
    code, told = inside("train", *plain, *SETS, *both)
    needs = "error: data.both_ways needs both languages: give --source-lang and --target-lang, such as en and de"
    assert (code, told.splitlines()[-1]) == (2, needs)


def test_the_average_is_the_mean_of_the_checkpoints(finished):
    weights = [Bundle.read(finished / "checkpoints" / f"step-{step:08d}").weights for step in (5, 10, 12)]
    mean = Bundle.read(finished / "model").weights
    for name, array in mean.items():
        assert abs(array - sum(w[name] for w in weights) / 3).max() < 1e-6


def test_what_a_person_reads(inside):
    lines = inside("train", *FILES, "--out", "runs/read", *SETS)[1].splitlines()
    assert lines[0] == "data: 300 pairs, 20 to validate on"
    assert any(line.startswith("estimate: about ") for line in lines)
    assert any(line.startswith("dev at step 12: loss ") for line in lines)
    assert lines[-1] == "next: headwise translate --model runs/read/model < in.txt > out.txt"


def test_the_live_display(corpus):
    """On a terminal: a bar, and a line with steps, loss, learning rate, speed and time left, drawn over and over."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process = subprocess.Popen([SCRIPT, "train", *FILES, "--out", "runs/live", *SETS], cwd=corpus, stderr=theirs)
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # Linux says EIO when the other side is closed
        while block := os.read(ours, 4096):
            seen += block
    os.close(ours)
    assert process.wait() == 0
    text = " ".join(re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", seen.decode()).split())
    assert re.search(r"━+ \d+%", text)
    assert re.search(
        r"step \d+ of 12 epoch \d+ loss [\d.]+ lr [\d.e-]+ [\d,]+ pieces/s \d+ \w+ gone, \d+ \w+ left", text
    ), text
    assert "next: headwise translate --model runs/live/model" in text


def test_finished_is_one_line(finished, inside):
    before = {
        path: path.read_bytes()
        for path in finished.rglob("*")
        if path.is_file() and path.name not in ("log.jsonl", "lock")
    }
    said = "finished already: max_steps 12; the model is runs/a/model\n"
    assert inside("train", *FILES, "--out", "runs/a", *SETS) == (0, said)
    assert {path: path.read_bytes() for path in before} == before


def test_higher_limits_go_on_and_the_old_model_stays(finished, corpus, inside):
    shutil.copytree(finished, corpus / "runs" / "more")
    old = (finished / "model" / "weights.safetensors").read_bytes()
    assert inside("train", "--out", "runs/more", "--set", "train.max_steps=15", "--quiet") == (0, "")
    assert (corpus / "runs/more/model-1/weights.safetensors").read_bytes() == old
    assert (corpus / "runs/more/model/weights.safetensors").read_bytes() != old
    assert inside("train", "--out", "runs/more", "--set", "train.max_epochs=1", "--quiet") == (0, "")
    assert sorted(p.name for p in (corpus / "runs/more").glob("model*")) == ["model", "model-1"]


CHANGES = [
    ("model.d_ff=23", "model.d_ff was 19 and is now 23"),
    ("model.dropout=0.2", "model.dropout was 0.3 and is now 0.2"),
    ("data.batch_tokens=100", "data.batch_tokens was 200 and is now 100"),
    ("train.seed=2", "train.seed was 1 and is now 2"),
    ("train.peak_lr=0.1", "train.peak_lr was 0.005 and is now 0.1"),
    ("tokenizer.normalise=none", "tokenizer.normalise was 'nfc' and is now 'none'"),
    ("search.beam_size=2", "search.beam_size was 4 and is now 2"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_what_may_not_change_is_named(finished, inside, change, message):
    said = f"error: runs/a/run.toml: {message}\nerror: a run goes on as it began; undo this, or train in a new folder\n"
    assert inside("train", *FILES, "--out", "runs/a", *SETS, "--set", change) == (2, said)


def test_other_text_is_refused(finished, corpus, inside, tmp_path):
    (tmp_path / "train.en").write_text((corpus / "train.en").read_text().replace("1", "2"))
    changed = [str(tmp_path / "train.en") if part == "train.en" else part for part in FILES]
    said = "error: runs/a/data/train was prepared from other text or with other settings; choose another folder\n"
    assert inside("train", *changed, "--out", "runs/a", *SETS) == (2, said)


def test_translate_line_by_line(finished, corpus):
    lines = "123\n\n  \n99\u20281\r\n4 5\u0085"
    done = headwise(corpus, "translate", "--model", "runs/a", text=lines.encode())
    assert done.returncode == 0, done.stderr
    out = done.stdout.decode().split("\n")
    assert len(out) == 6  # five lines, each with its end
    assert (out[1], out[2], out[5]) == ("", "  ", "")


def test_evaluate(finished, corpus):
    done = headwise(corpus, "evaluate", "runs/a/model", "--src", "dev.en", "--ref", "dev.de")
    bleu, chrf, *others = done.stdout.decode().splitlines()
    assert [line.split()[0] for line in others[:4]] == ["TER", "exact", "CER", "token"]
    assert re.fullmatch(r"BLEU [\d.]+  nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:[\d.]+", bleu)
    assert re.fullmatch(r"chrF2 [\d.]+  nrefs:1\|case:mixed\|eff:yes\|nc:6\|nw:0\|space:no\|version:[\d.]+", chrf)
    card = (finished / "model" / "card.md").read_text()
    assert f"- BLEU {bleu.split()[1]}, `{bleu.split()[2]}`" in card
    as_json = json.loads(headwise(corpus, "evaluate", "runs/a", "--src", "dev.en", "--ref", "dev.de", "--json").stdout)
    assert as_json["lines"] == 20


def test_gzip_pairs_weights_and_no_dev(corpus, inside):
    """One per cent is held out, by hash; a corpus of weight 2 stands twice in an epoch."""
    arguments = ["--pairs", "train.tsv.gz", "--pairs", "dev.tsv.gz", "--weight", "1", "--weight", "2"]
    assert inside("train", *arguments, "--source-lang", "xx", "--out", "runs/pairs", *SETS)[0] == 0
    start = next(
        json.loads(line) for line in (corpus / "runs/pairs/log.jsonl").read_text().splitlines() if '"start"' in line
    )
    assert (start["dev_pairs"], start["pairs"]) == (3, 317)
    config = Bundle.read(corpus / "runs/pairs/model").config
    assert ([c.weight for c in config.data.train], config.data.source_lang, config.data.target_lang) == (
        [1.0, 2.0],
        "xx",
        "und",
    )
    again = inside("train", *arguments, "--out", "runs/pairs", *SETS)
    assert again == (0, "finished already: max_steps 12; the model is runs/pairs/model\n")


def test_a_run_file(corpus, inside):
    made = inside("init", "mine.toml", *FILES, "--preset", "tiny", *SETS[:-2])
    assert made == (0, "wrote mine.toml; next: headwise train mine.toml\n")
    text = (corpus / "mine.toml").read_text()
    assert text.startswith('preset = "tiny"\nout = "runs/mine"\n')
    assert "warmup_steps = 5                  # updates over which the learning rate rises (5.3)\n" in text
    assert inside("init", "mine.toml", "--preset", "tiny")[0] == 2  # nothing is overwritten
    assert inside("train", "mine.toml", "--set", "train.max_steps=4", "--quiet") == (0, "")
    assert Bundle.read(corpus / "runs/mine/model").config.train.max_steps == 4


def test_fine_tuning(finished, corpus, inside):
    """It begins where the other ended, with its tokenizer and, without a preset, with its settings."""
    sets = [
        "--set",
        "train.max_steps=1",
        "--set",
        "train.save_every=1",
        "--set",
        "train.peak_lr=1e-9",
        "--threads",
        "1",
    ]
    assert inside("train", *FILES, "--init", "runs/a", "--out", "runs/tuned", *sets)[0] == 0
    assert (corpus / "runs/tuned/tokenizer.json").read_bytes() == (finished / "tokenizer.json").read_bytes()
    before, after = Bundle.read(finished / "model"), Bundle.read(corpus / "runs/tuned/model")
    assert (after.config.data.batch_tokens, after.config.model) == (200, before.config.model)
    assert max(abs(after.weights[name] - array).max() for name, array in before.weights.items()) < 1e-6
    (corpus / "drop.toml").write_text("[model]\ndropout = 0.35\n")
    assert inside("train", "drop.toml", *FILES, "--init", "runs/a", "--out", "runs/dropped", *sets)[0] == 0
    dropped = Bundle.read(corpus / "runs/dropped/model").config.model
    assert dropped == before.config.model.model_copy(update={"dropout": 0.35})
    in_targets = open_prepared(finished / "data/train").said(before.config.model.vocab_size)
    assert before.said == after.said == in_targets
    for name, earlier, together in (
        ("unknown", (), ()),
        ("others", (0, 1, 2, 3, before.config.model.vocab_size - 1), (*in_targets, before.config.model.vocab_size - 1)),
    ):
        replace(before, said=earlier).write(corpus / "runs" / name)
        assert inside("train", *FILES, "--init", f"runs/{name}", "--out", f"runs/from-{name}", *sets)[0] == 0
        assert {*Bundle.read(corpus / f"runs/from-{name}/model").said} == {*together}
    code, said = inside("train", *FILES, "--init", "runs/a", "--out", "runs/refused", "--preset", "tiny")
    assert code == 2
    assert "model.d_model was 16 and is now 128 (runs/a is to be the beginning)" in said


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_save_and_exit(corpus, tmp_path, number, code):
    arguments = [
        "train",
        *FILES,
        "--out",
        str(tmp_path / "run"),
        *SETS,
        "--set",
        "train.max_steps=100000",
        "--set",
        "train.save_every=100000",
    ]
    process = subprocess.Popen([SCRIPT, *arguments], cwd=corpus, stderr=subprocess.PIPE)
    log = tmp_path / "run" / "log.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (log.exists() and '"event": "step"' in log.read_text()):
        time.sleep(0.02)
    process.send_signal(number)
    began = time.monotonic()
    _, errors = process.communicate(timeout=30)
    assert process.returncode == code, errors
    assert time.monotonic() - began < 10
    assert b"and saved; the same command goes on from there" in errors
    assert b"Traceback" not in errors
    assert len(list((tmp_path / "run/checkpoints").glob("step-*/weights.safetensors"))) == 1


def test_two_trainers_in_one_folder(corpus, tmp_path):
    arguments = ["train", *FILES, "--out", str(tmp_path / "run"), *SETS, "--set", "train.max_steps=100000"]
    first = subprocess.Popen([SCRIPT, *arguments, "--quiet"], cwd=corpus)
    log = tmp_path / "run" / "log.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (log.exists() and '"start"' in log.read_text()):
        time.sleep(0.02)
    try:
        second = headwise(corpus, *arguments)
        assert second.returncode == 2
        assert f"is being trained in by process {first.pid} on ".encode() in second.stderr
    finally:
        first.kill()
        first.wait()
    third = headwise(corpus, *arguments[:-2], "--set", "train.max_steps=5")  # the lock of the dead holds nobody up
    assert third.returncode == 0, third.stderr


def test_a_full_disk_is_refused_before_the_first_step_and_fails_loudly_later(corpus, tmp_path):
    def limit(n: int):
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))

    done = headwise(corpus, "train", *FILES, "--out", str(tmp_path / "a"), *SETS, preexec_fn=limit(40_000))
    assert done.returncode == 2
    assert b"a file may have 0 MB (ulimit -f) and a checkpoint needs" in done.stderr
    assert not list((tmp_path / "a" / "checkpoints").iterdir())
    assert headwise(corpus, "train", *FILES, "--out", str(tmp_path / "b"), *SETS).returncode == 0
    # Later, a limit that the log runs into: loud, and what was there stays.
    before = {p: p.read_bytes() for p in (tmp_path / "b" / "checkpoints").rglob("*") if p.is_file()}
    log, largest = tmp_path / "b" / "log.jsonl", max(map(len, before.values()))
    log.write_text(log.read_text() + json.dumps({"event": "note", "text": "x" * (2 * largest)}) + "\n")
    more = ["--set", "train.max_steps=500", "--set", "train.validate_every=500", "--set", "train.save_every=500"]
    done = headwise(
        corpus, "train", *FILES, "--out", str(tmp_path / "b"), *SETS, *more, preexec_fn=limit(log.stat().st_size + 2000)
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.decode().splitlines()[-1] == f"error: cannot write {log}: File too large"
    assert {p: p.read_bytes() for p in before} == before


FAULTS = [
    (["--src", "none.en", "--tgt", "train.de"], "error: cannot read none.en: No such file or directory\n"),
    (["--src", "train.en"], "error: --src is given 1 times and --tgt 0 times: they go together\n"),
    (["--src", "train.en", "--tgt", "dev.de", "--preset", "tiny"], "error: unequal lines: train.en has 300 lines, dev.de has 20: parallel files must match line by line; find where the two files part, and mend it there\n"),
    (["--preset", "tiny"], "error: there is nothing to learn from: give --src and --tgt, or --pairs, or [[data.train]]\n"),
    ([*FILES, "--preset", "tinny"], "error: unknown preset 'tinny'; choose from base, big, small, tiny; did you mean 'tiny'?\n"),
    ([*FILES, "--set", "train.warmup=3"], "error: unknown setting 'train.warmup' from --set; did you mean 'train.warmup_steps'?\n"),
    ([*FILES, "--set", "model.vocab_size=50"], "error: model.vocab_size follows from the tokenizer; set tokenizer.vocab_size instead\n"),
    ([*FILES, "--weight", "2", "--weight", "3"], "error: --weight is given 2 times for 1 corpora: one for each\n"),
    ([*FILES, "--init", "nowhere"], "error: there is no model 'nowhere'; headwise models list shows those that have a name\n"),
    pytest.param([*FILES, "--device", "cuda"], "error: there is no CUDA device that torch can use; leave --device out\n", marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")),
    ([*FILES, "--device", "tpu"], "error: there is no device 'tpu'; choose from auto, cpu, cuda\n"),
    (["nothing.toml"], "error: there is no run file nothing.toml\n"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), FAULTS)
def test_wrong_invocations(corpus, inside, arguments, message):
    assert inside("train", *arguments, "--out", "runs/wrong") == (2, message)
    assert not (corpus / "runs/wrong/checkpoints").exists() or not list((corpus / "runs/wrong/checkpoints").iterdir())


def test_no_out(inside):
    assert inside("train", *FILES) == (2, "error: where to? give --out DIR, such as --out runs/mine\n")


def test_foreign_folders_are_refused(inside, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, words in (
        ("full", "holds 'thesis.tex' and is no run folder"),
        ("file", "File exists"),
        ("link", "is a link to nothing"),
    ):
        code, said = inside("train", *FILES, "--out", str(tmp_path / name), *SETS)
        assert code == 2
        assert words in said
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["thesis.tex"]


def test_read_only_folders_are_refused():
    """By root as another user, because root may write everywhere; that one need not be able to read the interpreter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o555)
    try:
        script = (
            "import os, sys\nfrom headwise.train.folder import RunFolder\nfrom headwise.errors import FolderError\n"
            "from pathlib import Path\nif os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n"
            f"try:\n    with RunFolder(Path({str(folder / 'run')!r})).locked(): pass\nexcept FolderError as error: print(error)"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert done.stdout == f"cannot write to {folder / 'run'}: Permission denied; choose another folder\n"
    finally:
        shutil.rmtree(folder)


def test_without_torch_train_says_so(corpus):
    script = "import sys; sys.modules['torch'] = None\nfrom headwise.cli.main import main\nsys.exit(main(['train', '--src', 'train.en', '--tgt', 'train.de', '--out', 'x']))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=corpus, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "error: this needs torch, which is not installed; pip install 'headwise[train]'\n",
    )
