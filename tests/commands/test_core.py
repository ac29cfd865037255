"""What the core does where torch is not installed."""

import subprocess
import sys

import pytest

HIDE_TORCH = "import sys; sys.modules['torch'] = None\n"


def run(script: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", HIDE_TORCH + script], capture_output=True, text=True, check=False)


def test_info_and_the_model_folder_work(tmp_path):
    done = run(
        f"""
import numpy, headwise
from headwise.architecture import parameters
config = headwise.load_config("tiny")
weights = {{name: numpy.zeros(shape, numpy.float32) for name, shape in parameters(config.model).items()}}
headwise.Bundle(config, weights, stored="float16").write({str(tmp_path / "m")!r})
from headwise.cli.main import main
sys.exit(main(["info", {str(tmp_path / "m")!r}]))
"""
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "2,605,056" in done.stdout


@pytest.mark.parametrize("name", ["Transformer", "capture", "beam", "greedy", "Task"])
def test_what_needs_torch_says_so(name):
    done = run(f"import headwise\ntry: headwise.{name}\nexcept headwise.HeadwiseError as error: print(error)")
    assert done.stdout == "this needs torch, which is not installed; pip install 'headwise[train]'\n"
