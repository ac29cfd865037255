"""Numbers as people read them."""


def short(number: int) -> str:
    """Such as 12.3 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return str(number)


def in_bytes(number: int) -> str:
    """Such as 12.3 MB."""
    return f"{short(number)}B" if number >= 1000 else f"{number} B"
