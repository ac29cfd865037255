"""headwise: the Transformer of "Attention Is All You Need", end to end.

The public names stand in `__all__` and are imported when they are first used, so that `import headwise` is cheap and
torch is only needed by those that work on tensors.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwise.architecture import describe as describe
    from headwise.bundle import Bundle as Bundle
    from headwise.config import ModelConfig as ModelConfig
    from headwise.config import RunConfig as RunConfig
    from headwise.config import SearchConfig as SearchConfig
    from headwise.config import load_config as load_config
    from headwise.errors import HeadwiseError as HeadwiseError
    from headwise.loading import load as load
    from headwise.model.capture import capture as capture
    from headwise.model.transformer import Transformer as Transformer
    from headwise.search.beam import beam as beam
    from headwise.search.greedy import greedy as greedy
    from headwise.search.task import Task as Task
    from headwise.translation import Translation as Translation
    from headwise.translator import Translator as Translator

__version__ = "0.1.0"

_HOMES = {
    "Bundle": "headwise.bundle",
    "HeadwiseError": "headwise.errors",
    "ModelConfig": "headwise.config",
    "RunConfig": "headwise.config",
    "SearchConfig": "headwise.config",
    "Task": "headwise.search.task",
    "Transformer": "headwise.model.transformer",
    "Translation": "headwise.translation",
    "Translator": "headwise.translator",
    "beam": "headwise.search.beam",
    "capture": "headwise.model.capture",
    "describe": "headwise.architecture",
    "greedy": "headwise.search.greedy",
    "load": "headwise.loading",
    "load_config": "headwise.config",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"headwise has no {name!r}; it has {', '.join(__all__)}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from headwise.errors import MissingExtra

        raise MissingExtra("torch", extra="train") from None
