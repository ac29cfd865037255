"""headwise demo as a user types it: killed half-way, interrupted, cut short, refused."""

import json
import re
import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import torch

from headwise.cli.main import main
from headwise.demo.run import STEPS, Demo
from headwise.train.stop import Stop

SCRIPT = Path(sys.executable).with_name("headwise")


def events(folder: Path) -> list[dict]:
    log = folder / "run" / "log.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def begin(folder: Path, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [SCRIPT, "demo", *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for(process: subprocess.Popen, folder: Path, event: str) -> None:
    while process.poll() is None and event not in [e["event"] for e in events(folder)]:
        time.sleep(0.05)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Where a demo was killed half-way."""
    place = tmp_path_factory.mktemp("demo")
    process = begin(place)
    wait_for(process, place / "headwise-demo", "checkpoint")
    process.kill()
    process.communicate()
    return place


@pytest.fixture
def inside(capsys):
    """In this process, where torch is loaded already: exit code, standard output, standard error."""
    threads = torch.get_num_threads()
    yield lambda *arguments: (main(arguments), *capsys.readouterr())
    torch.set_num_threads(threads)


def saved(place: Path) -> int:
    return max(e["step"] for e in events(place / "headwise-demo") if e["event"] == "checkpoint")


def test_a_signal_saves_and_says_how_to_go_on(place):
    before = saved(place)
    n_events = len(events(place / "headwise-demo"))
    process = begin(place)
    while process.poll() is None and "step" not in [e["event"] for e in events(place / "headwise-demo")[n_events:]]:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert f"going on from step {before}\n" in err
    assert f"stopped at step {saved(place)} and saved; the same command goes on from there\n" in err
    assert saved(place) > before


def test_it_goes_on_to_the_end_and_names_what_is_there_and_what_runs(place, inside, monkeypatch):
    monkeypatch.chdir(place)
    before = saved(place)
    steps = ("--steps", str(before + 2))
    code, out, err = inside("demo", *steps)
    assert code == 0
    assert f"going on from step {before}\n" in err
    told = rf"^exact on unseen dates: \d+ of 1,000, after {before + 2} of {before + 2} steps in \d+ s$"
    assert re.search(told, out, re.MULTILINE)
    assert max(map(len, out.splitlines())) <= 100
    files = re.findall(r"^  (headwise-demo/\S+)", out, re.MULTILINE)
    assert [Path(name).name for name in files] == ["attention.svg", "report.html"]
    assert all(Path(name).is_file() for name in files)
    ElementTree.parse(files[0])

    further, translate, evaluate, own = (line.strip() for line in out.splitlines() if line.startswith("  headwise "))
    assert further == f"headwise demo --out headwise-demo --steps {2 * before + 4}"
    assert inside(*shlex.split(translate)[1:])[0] == 0
    assert "exact " in inside(*shlex.split(evaluate)[1:])[1]
    assert own.startswith("headwise train --src ")
    before = {path: path.read_bytes() for path in Path("headwise-demo").glob("*.tsv")}
    code, out_again, err = inside("demo", *steps)
    assert (code, out_again) == (0, out)
    assert err == f"finished already: max_steps {steps[1]}; the model is headwise-demo/run/model\n"
    assert {path: path.read_bytes() for path in Path("headwise-demo").glob("*.tsv")} == before
    other = "error: headwise-demo/train.tsv is not that of a demo with seed 2; choose another folder with --out\n"
    assert inside("demo", "--seed", "2") == (2, "", other)


def test_foreign_folders_are_refused(inside, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "train.tsv").write_text("years of work\tJahre\n")
    (tmp_path / "file").write_text("")
    for name, words in (("mine", "mine/train.tsv is not that of a demo with seed 1"), ("file", "is there already")):
        code, out, err = inside("demo", "--out", name)
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
        assert words in err
        assert err.count("\n") == 1
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["train.tsv"]


def test_without_torch_it_says_so(tmp_path):
    script = "import sys; sys.modules['torch'] = None\nfrom headwise.cli.main import main\nsys.exit(main(['demo']))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "error: this needs torch, which is not installed; pip install 'headwise[train]'\n",
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_it_learns(tmp_path):
    """All of it, without the limit of time, which a busy machine may run into."""
    demo = Demo(tmp_path / "demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headwise.demo.run.MINUTES", 30.0)
        assert demo.learn(1, lambda event: None, Stop()).step == STEPS
    examples, _ = demo.ask()
    assert sum(example.right for example in examples) >= 990
