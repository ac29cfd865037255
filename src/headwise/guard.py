"""The loop guard: a translation that repeats itself although its source does not is replaced."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from headwise.text.loops import cut
from headwise.translation import Translation


class Candidate(NamedTuple):
    """A translation, the ids that it was made of, and whether it repeats itself although its source does not."""

    translation: Translation
    ids: tuple[int, ...]
    loops: bool

    def mended(self, way: str) -> "Candidate":
        return self._replace(translation=replace(self.translation, loop=way))


def guarded(
    found: list[list[Candidate]],
    others: Callable[[list[int]], list[list[Candidate]]],
    again: Callable[[list[int]], list[Candidate]],
) -> list[list[Candidate]]:
    """Candidates of each text, best first, with one that does not loop in front.

    That is the best alternative that does not, of all that `others` gives for those texts; where all of them do, what
    `again` decodes, without repeats; and where that does too, what is left of it when it is cut. Nothing at all is no
    alternative.
    """
    guarded, lost = list(found), []
    looping = [i for i, candidates in enumerate(found) if candidates[0].loops]
    for i, candidates in zip(looping, others(looping) if looping else [], strict=True):
        fair = next((k for k, one in enumerate(candidates) if one.translation.text and not one.loops), None)
        if fair is None:
            lost.append(i)
        else:
            guarded[i] = [candidates[fair].mended("alternative"), *candidates[:fair], *candidates[fair + 1 :]]
    for i, one in zip(lost, again(lost) if lost else [], strict=True):
        best = (one if one.translation.text else found[i][0]).mended("again")
        if best.loops:
            shorter = replace(best.translation, text=cut(best.translation.text), loop="cut")
            best = best._replace(translation=shorter)
        guarded[i] = [best, *found[i][1:]]
    return guarded
