"""Mistakes that people make: each is answered by one line of cause and remedy and exit code 2, never by a traceback."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from headwise.cli.main import main

FILES = "--src train.en --tgt train.de"
WRONG = [
    # verbs and flags
    ("trian", "No such command 'trian'. Did you mean 'train'?"),
    ("data chekc", "No such command 'chekc'. Did you mean 'check'?"),
    ("translate Hello --modle model", "No such option: --modle"),
    ("translate Hello --model model --n-best many", "Invalid value for '--n-best'"),
    (f"train {FILES} --out r --threads 0", "Invalid value for '--threads'"),
    ("evaluate", "Missing argument 'MODEL'."),
    # files
    ("train --src trian.en --tgt train.de --out r", "cannot read trian.en: No such file or directory; did you mean 'train.en'?"),
    ("train --src folder --tgt train.de --out r", "cannot read folder: Is a directory"),
    ("train --src train.en --out r", "--src is given 1 times and --tgt 0 times: they go together"),
    ("train --src train.en --tgt short.de --out r", "train.en has 20 lines, short.de has 19: parallel files must match line by line"),
    (f"train {FILES}", "where to? give --out DIR, such as --out runs/mine"),
    (f"train {FILES} --out r --weight 1 --weight 2", "--weight is given 2 times for 1 corpora: one for each"),
    ("translate --model model --input trian.en", "cannot read trian.en: No such file or directory; did you mean 'train.en'?"),
    ("translate --model model --input train.en --output train.de", "train.de is there already; choose another name, or move it away"),
    ("translate --model model --input bad.en --output out.txt", "bad.en, line 2, byte 1: 0xff is not UTF-8; convert the file"),
    ("translate --model model --resume", "--resume needs --input and --output"),
    ("evaluate model --src train.en", "give --src and --ref, or --pairs"),
    ("evaluate model --pairs train.en", "train.en, line 1: no tab, so it has no reference"),
    ("init typo.toml --src train.en --tgt train.de", "typo.toml is there already; choose another name or move it away"),
    # settings and presets
    (f"train {FILES} --out r --preset tinny", "unknown preset 'tinny'; choose from base, big, small, tiny; did you mean 'tiny'?"),
    (f"train {FILES} --out r --set train.warmup_step=3", "unknown setting 'train.warmup_step' from --set; did you mean 'train.warmup_steps'?"),
    (f"train {FILES} --out r --set train.max_steps=many", "setting 'train.max_steps' is 'many' from --set; it must be a whole number"),
    (f"train {FILES} --out r --set train", "--set train: write it as section.name=value, such as model.d_model=256"),
    ("train typo.toml", "unknown setting 'model.d_modle' in typo.toml; did you mean 'model.d_model'?"),
    ("train broken.toml", "broken.toml is not valid TOML: "),
    ("translate Hello --model model --set search.beam=3", "unknown setting 'beam' in search; did you mean 'beam_size'?"),
    ("translate Hello --model model --set train.seed=3", "only settings of the search can change here, such as search.beam_size"),
    # models, languages, engines
    ("translate Hello --model train.en", "train.en is a file; a model of headwise is a folder"),
    ("translate Hello --model folder", "folder is not a model folder of headwise: there is no manifest.json"),
    ("translate Hello --model damaged", "weights.safetensors is truncated: 100 bytes, not "),
    ("translate Hello --model model --to klingon", "this model has no target language 'klingon'; it knows und"),
    ("translate Hello --model model --engine tensorflow", "there is no engine 'tensorflow'; choose from auto, torch, ctranslate2"),
    ("translate Hello --model model --compute-type int3", "there is no compute type 'int3'; choose from auto, float32, int8, bfloat16"),
]  # fmt: skip
if find_spec("torch"):  # without it training gets no further than to say so
    WRONG += [
        ("train --src bad.en --tgt two.de --out r", "invalid UTF-8: bad.en:2 byte 1; convert the file to UTF-8"),
        ("train --pairs train.en --out r", "nothing left: train.en; no line has two sides; in a file of pairs a tab parts them"),
        (f"train {FILES} --out train.en", "cannot write to train.en: File exists; choose another folder"),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory, babbler) -> Path:
    made = tmp_path_factory.mktemp("mistakes")
    lines = [f"line {i}\n" for i in range(20)]
    texts = {
        "train.en": lines,
        "train.de": lines,
        "short.de": lines[:19],
        "two.de": lines[:2],
        "broken.toml": ["[model"],
    }
    for name, content in texts.items():
        (made / name).write_text("".join(content))
    (made / "bad.en").write_bytes(b"good\n\xff bad\n")
    (made / "typo.toml").write_text('preset = "tiny"\n[model]\nd_modle = 3\n')
    (made / "folder").mkdir()
    for name in ("model", "damaged"):
        shutil.copytree(babbler, made / name)
    weights = made / "damaged" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    return made


@pytest.mark.parametrize(("typed", "words"), WRONG, ids=[typed for typed, _ in WRONG])
def test_one_line_and_exit_code_2(typed, words, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(typed.split()) == 2
    printed, told = capsys.readouterr()
    assert printed == ""
    assert "Traceback" not in told
    [line] = [line for line in told.splitlines() if line.startswith("error: ")]
    assert words in line
    assert told.splitlines()[-1] == line


def script(before: str, typed: str) -> list[str]:
    return [
        sys.executable,
        "-c",
        f"import os, sys\n{before}\nfrom headwise.cli.main import main\nsys.exit(main({typed.split()}))",
    ]


@pytest.mark.parametrize(
    ("before", "typed", "words"),
    [
        ("sys.modules['torch'] = None", f"train {FILES} --out r", "this needs torch, which is not installed; pip install 'headwise[train]'"),
        ("sys.modules['torch'] = None", "translate Hello --model model --engine torch", "pip install 'headwise[train]'"),
        ("sys.modules['sacrebleu'] = None", "evaluate model --src train.en --ref train.de", "pip install 'headwise[train]'"),
        ("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9))", "init full.toml --src train.en --tgt train.de", "full.toml"),
    ],
)  # fmt: skip
def test_what_the_machine_lacks(before, typed, words, folder):
    done = subprocess.run(script(before, typed), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert words in line


def test_no_permission(tmp_path_factory):
    """As another user, since root may do everything; what is imported comes first, where that user may not read."""
    closed = Path("/tmp") / tmp_path_factory.mktemp("closed").name
    closed.mkdir(mode=0o755)
    before = (
        "from headwise.cli.main import main; main(['init', 'warm.toml', '--preset', 'tiny']); os.unlink('warm.toml')\n"
    )
    before += "if os.getuid() == 0: os.setgid(65534); os.setuid(65534)"
    try:
        (closed / "pairs.tsv").write_text("a\tb\n")
        (closed / "pairs.tsv").chmod(0)
        done = subprocess.run(
            script(before, "init run.toml --pairs pairs.tsv"), cwd=closed, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2, done.stderr
        *_, line = done.stderr.splitlines()  # after that of the command which imports everything
        assert line.startswith("error: ")
        assert "path 'pairs.tsv' is not readable" in line
    finally:
        shutil.rmtree(closed)
