"""Every exception that a user can meet.

HeadwiseError                 what the user can mend; the command line prints its text and exits with code 2
├── ConfigError               a setting, a preset, a run file or an override
├── DataError                 a corpus that cannot be read
│   └── UnequalLines          its two files do not match line by line
├── FolderError               a folder that cannot be written
├── InputError                ids or texts that the model cannot take
├── MissingExtra              an optional library is not installed
├── TrainingError             training cannot go on
└── BundleError               a model folder that cannot be read
    ├── NotABundle            there is no model folder of headwise there
    ├── BundleDamaged         a file is missing, truncated or altered
    ├── BundleVersion         written in a format that this version does not read
    └── ParameterMismatch     the weights are not those of the configuration

Interrupted                   a signal came; no fault, so it is none of these
"""


class HeadwiseError(Exception):
    """What a user can mend; several problems found together stand on lines of their own."""


class ConfigError(HeadwiseError):
    """A setting, a preset, a run file or an override is wrong."""


class DataError(HeadwiseError):
    """A corpus cannot be read."""


class UnequalLines(DataError):
    """The two files of a corpus do not match line by line."""


class FolderError(HeadwiseError):
    """A folder cannot be written."""


class InputError(HeadwiseError):
    """Ids or texts that the model cannot take."""


class MissingExtra(HeadwiseError):
    """An optional library is not installed."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"this needs {library}, which is not installed; pip install 'headwise[{extra}]'")


class TrainingError(HeadwiseError):
    """Training cannot go on."""


class BundleError(HeadwiseError):
    """A model folder cannot be read, or its weights cannot be stored."""


class NotABundle(BundleError):
    """There is no model folder of headwise there."""


class BundleDamaged(BundleError):
    """A file of the model folder is missing, truncated or altered."""


class BundleVersion(BundleError):
    """The model folder is written in a format that this version does not read."""


class ParameterMismatch(BundleError):
    """The weights are not those that the configuration asks for."""


class Interrupted(BaseException):
    """A signal came; `number` says which."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
