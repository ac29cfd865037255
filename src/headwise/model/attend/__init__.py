"""Ways of attending: one file each, and one line each in this table."""

from headwise.model.attend.auto import Auto
from headwise.model.attend.contract import Attend
from headwise.model.attend.fused import Fused
from headwise.model.attend.reference import Reference

__all__ = ["WAYS", "Attend", "Reference"]

WAYS: dict[str, type[Attend]] = {
    "auto": Auto,
    "reference": Reference,
    "fused": Fused,
}
