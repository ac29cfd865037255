from typing import Any

from headwise.guard import Candidate, guarded
from headwise.text.loops import loops
from headwise.translation import Translation

LOOP = "salad " * 30


def candidate(text: str, source: str = "a salad") -> Candidate:
    return Candidate(Translation(source, text.strip()), ids=(len(text),), loops=loops(text, source))


def nobody(looping: list[int]) -> list[Any]:
    raise AssertionError("nothing is to be decoded again")


def test_what_does_not_loop_stays():
    found = [[candidate("ein Salat"), candidate(LOOP)], [candidate(LOOP, source=LOOP)], [candidate("")]]
    assert guarded(found, nobody, nobody) == found


def test_the_best_alternative_that_does_not_loop_comes_to_the_front():
    first, second, third = candidate(LOOP), candidate(LOOP * 2), candidate("ein Salat")
    [[best, *others]] = guarded([[first]], lambda looping: [[first, second, third]], nobody)
    assert (best.translation.text, best.translation.loop, best.ids) == ("ein Salat", "alternative", third.ids)
    assert others == [first, second]


def test_where_all_loop_it_is_decoded_again_and_else_cut():
    asked = []

    def again(looping: list[int]) -> list[Candidate]:
        asked.extend(looping)
        return [candidate("ein Salat"), candidate(LOOP)]

    fair, other = candidate("gut"), candidate(LOOP * 3)
    given = [[fair], [candidate(LOOP), other], [candidate(LOOP)]]
    found = guarded(given, lambda looping: [given[i] for i in looping], again)
    assert asked == [1, 2]
    assert found[0] == [fair]
    assert [one.translation.loop for one, *_ in found] == [None, "again", "cut"]
    assert [one.translation.text for one, *_ in found] == ["gut", "ein Salat", "salad"]
    assert found[1][1:] == [other]


def test_nothing_at_all_is_no_alternative():
    empty, loop = candidate(""), candidate(LOOP)
    for again, way, text in ((candidate("ein Salat"), "again", "ein Salat"), (empty, "cut", "salad")):
        [[best, *_]] = guarded([[loop]], lambda looping: [[loop, empty]], lambda looping, made=again: [made])
        assert (best.translation.text, best.translation.loop) == (text, way)
