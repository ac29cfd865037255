"""Edit distance beside the textbook's table."""

from hypothesis import given
from hypothesis import strategies as st

from headwise.evaluate.distance import distance


def textbook(a: str, b: str) -> int:
    table = {(i, 0): i for i in range(len(a) + 1)} | {(0, j): j for j in range(len(b) + 1)}
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            change = table[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, change)
    return table[len(a), len(b)]


@given(st.text("abc", max_size=9), st.text("abc", max_size=9))
def test_against_the_textbook(a, b):
    assert distance(a, b) == textbook(a, b) == distance(b, a)


def test_units_are_what_is_given():
    assert distance(["K", "AE", "T"], ["K", "AH", "T", "S"]) == 2
    assert distance([], ["K"]) == 1
    assert distance("kitten", "sitting") == 3
