"""What the documents say is so: symbols resolve, links lead somewhere, code runs, printed output is what is printed."""

import importlib
import inspect
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import reference  # docs/reference.py
import torch  # noqa: F401
import typer

import headwise
from headwise.cli.main import COMMANDS, app
from headwise.config import CorpusConfig, known_settings, load_config, parse_override, paths_of, preset_names
from headwise.model.positions import DIALECTS, sinusoids

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "benchmarks" / "README.md"]


WITH_PYTHON = [page for page in PAGES if "```python" in page.read_text()]


def blocks(page: Path | str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


def shown_commands() -> list[str]:
    """What follows the program's name, wherever a page shows a command."""
    lines = [
        line for page in PAGES for block in blocks(page, "bash") for line in block.replace("\\\n", "").splitlines()
    ]
    return sorted({found[1] for line in lines if (found := re.search(r"(?:^|[ /])headwise (.*?)(?: [<>] .*)?$", line))})


@pytest.fixture(scope="module")
def workplace(tmp_path_factory) -> Path:
    """A folder with files of the README's names, and the run that its first command makes of them, cut short."""
    folder = tmp_path_factory.mktemp("workplace")
    for name in ("train", "val", "test"):
        for language in ("en", "de"):
            lines = [f"{word} {name} {language} {i}" for i, word in enumerate(["one", "two", "three"] * 10)]
            (folder / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines))
    (folder / "in.txt").write_text("one\ntwo\n")
    short = " --set train.max_steps=2 --set model.d_model=16 --set search.extra_pieces=3"
    run_in(folder, blocks("README.md", "bash")[0].splitlines()[0] + short)
    return folder


def run_in(folder: Path, command: str) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(command, shell=True, check=True, cwd=folder, env=environment, capture_output=True)


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
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", WITH_PYTHON, ids=[page.name for page in WITH_PYTHON])
def test_python_runs(page, workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), {})


def test_the_readmes_console_prints_what_it_says():
    shown = re.findall(r"^\$ headwise (.*)\n((?:[^$].*\n)*)", "".join(blocks("README.md", "console")), re.MULTILINE)
    assert len(shown) == 3
    for command, output in shown:
        arguments = [sys.executable, "-m", "headwise", *shlex.split(command)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert done.stdout + done.stderr == output


def test_the_readmes_commands_run(workplace):
    [_, *commands], more = (block.splitlines() for block in blocks("README.md", "bash"))
    for command in (*commands, *more):
        run_in(workplace, command)
    assert len((workplace / "test.out").read_text().split("\n")) == 31


@pytest.mark.parametrize("line", shown_commands())
def test_commands_parse(line):
    command, arguments = typer.main.get_command(app), shlex.split(line.removesuffix(" ..."))
    while hasattr(command, "commands"):
        command = command.commands[arguments.pop(0)]
    given = command.make_context(line, arguments).params
    settings = {path for override in given.get("overrides") or () for path in paths_of(parse_override(override))}
    assert {path for path in settings if "." in path} <= set(known_settings())


@pytest.mark.parametrize("block", [block for page in PAGES for block in blocks(page, "toml")])
def test_run_files_are_such(block, tmp_path):
    (tmp_path / "run.toml").write_text(block)
    load_config(file=tmp_path / "run.toml")


def test_the_reference_has_every_command_with_all_its_options():
    page = reference.commands()
    for name, function in COMMANDS.items():
        [section] = re.findall(rf"^## headwise {name}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
        assert section.count("\n: ") == len(inspect.signature(function).parameters), name


def test_the_reference_has_every_setting_and_preset():
    page = reference.settings()
    for path, field in (known_settings() | CorpusConfig.model_fields).items():
        assert f"\n`{path}`\n: {field.description}\\\n" in page
    [header] = re.findall(r"^\| \| default \| (.*) \|$", page, re.MULTILINE)
    assert sorted(header.split(" | ")) == preset_names()


def test_the_reference_has_every_public_name():
    page = reference.api()
    assert [name for name in headwise.__all__ if f":: headwise.{name}" not in page] == []


def test_the_readmes_commands_are_two_and_ci_calls_them():
    install, test = blocks("README.md", "sh")
    assert install.strip().endswith('headwise translate "Where is the station?"')
    assert test.strip().endswith("-m pytest")
    assert "README.md" in (ROOT / ".ci/run").read_text()


def test_extras_and_constraints():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert list(project["optional-dependencies"]) == ["train", "serve", "explain", "cluster", "track", "docs", "dev"]
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
