"""What the documents say is so: symbols resolve, links lead somewhere, code runs, printed output is what is printed."""

import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch  # noqa: F401

from headwise.config import load_config
from headwise.model.positions import DIALECTS, sinusoids

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "benchmarks" / "README.md"]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


def resolve(path: str) -> object:
    parts = path.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for name in parts[n:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(path)


@pytest.mark.parametrize(
    "symbol", sorted(set(re.findall(r"`(headwise\.[\w.]+)`", (ROOT / "docs/paper.md").read_text())))
)
def test_symbols_of_the_paper_resolve(symbol):
    assert resolve(symbol) is not None


def test_every_section_of_the_model_is_mapped():
    page = (ROOT / "docs/paper.md").read_text()
    for section in (
        "3 ",
        "3.1",
        "3.2 ",
        "3.2.1",
        "3.2.2",
        "3.2.3",
        "3.3",
        "3.4",
        "3.5",
        "5.1",
        "5.2",
        "5.3",
        "5.4",
        "6.1",
        "6.2",
    ):
        assert re.search(rf"^\| {re.escape(section)}.*`headwise\.", page, re.MULTILINE), section


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("code", blocks("README.md", "python")[1:], ids=["model", "folder"])
def test_the_readmes_python_runs(code, tmp_path):
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)


def test_the_readmes_console_prints_what_it_says():
    for block in blocks("README.md", "console"):
        [command, *output] = block.splitlines()
        arguments = command.removeprefix("$ headwise ").split()
        done = subprocess.run(
            [sys.executable, "-m", "headwise", *arguments], capture_output=True, text=True, check=False
        )
        assert (done.stdout + done.stderr).splitlines() == output


def test_the_readmes_training_and_translating_run(tmp_path):
    """As they stand there, on files of those names, cut short."""
    for name in ("train", "val", "test"):
        for language in ("en", "de"):
            lines = [f"{word} {name} {language} {i}" for i, word in enumerate(["one", "two", "three"] * 10)]
            (tmp_path / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    [train, translate, evaluate], more = (block.splitlines() for block in blocks("README.md", "bash"))
    short = " --set train.max_steps=2 --set model.d_model=16 --set search.extra_pieces=3"
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in (train + short, translate, evaluate, *more):
        subprocess.run(command, shell=True, check=True, cwd=tmp_path, env=environment, capture_output=True)
    code = blocks("README.md", "python")[0]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert len((tmp_path / "test.out").read_text().split("\n")) == 31


def test_the_readmes_run_file_is_one(tmp_path):
    [block] = blocks("README.md", "toml")
    (tmp_path / "run.toml").write_text(block)
    assert load_config(file=tmp_path / "run.toml").model.n_decoder_layers == 2


def test_the_readmes_commands_are_two_and_ci_calls_them():
    install, test = blocks("README.md", "sh")
    assert install.strip().endswith("headwise info base")
    assert test.strip().endswith("-m pytest")
    assert "README.md" in (ROOT / ".ci/run").read_text()


def test_extras_and_constraints():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert list(project["optional-dependencies"]) == ["train", "serve", "explain", "cluster", "track", "dev"]
    core = {re.split(r"[<>=]", requirement)[0] for requirement in project["dependencies"]}
    assert core == {"ctranslate2", "tokenizers", "safetensors", "pydantic", "typer", "rich", "sentencex", "numpy"}
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    assert {"torch==2.13.0"} <= set(lines)
    assert core <= {line.split("==")[0] for line in lines}


def test_the_first_pair_of_sinusoids_tells_positions_apart():
    """Which the misreading that docs/paper.md warns of does not."""
    table = sinusoids(0, 100, 16, DIALECTS["paper"])
    assert len({tuple(row[:2].tolist()) for row in table}) == 100
