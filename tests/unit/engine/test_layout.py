"""One sentence by itself: by one thread or by several, whichever has been faster of late."""

from types import SimpleNamespace

import pytest

from headwise import load
from headwise.engine import layout
from headwise.engine.layout import AGAIN, TRIALS, Layout


@pytest.fixture(autouse=True)
def nobody(monkeypatch):
    """No other layout of this process has threads."""
    monkeypatch.setattr(layout, "_threaded", None)


class Clock:
    """Calls that take as long as is said, and what they were given to."""

    def __init__(self, monkeypatch, workers: float, threads: float) -> None:
        self.now, self.seconds, self.ways = 0.0, {(2, 1): workers, (1, 2): threads}, ""
        monkeypatch.setattr(layout, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def call(self, translator: tuple[int, int]) -> str:
        self.now += self.seconds[translator]
        self.ways += "w" if translator == (2, 1) else "t"
        return "done"


def ways(clock: Clock, layout: Layout, n: int) -> str:
    clock.ways = ""
    assert all(layout.alone(10, clock.call) == "done" for _ in range(n))
    return clock.ways


@pytest.mark.parametrize(("workers", "threads", "faster", "slower"), [(2, 1, "t", "w"), (1, 2, "w", "t")])
def test_both_are_tried_and_the_faster_is_taken(monkeypatch, workers, threads, faster, slower):
    clock, tried = Clock(monkeypatch, workers, threads), Layout(lambda *asked: asked, 2)
    assert ways(clock, tried, 2 * TRIALS) == "w" * TRIALS + "t" * TRIALS
    assert ways(clock, tried, AGAIN) == faster * (AGAIN - 1) + slower
    assert ways(clock, tried, 2 * AGAIN) == faster * (2 * AGAIN - 1) + slower  # it was slower still


def test_what_becomes_slow_is_left_until_it_is_fast_again(monkeypatch):
    clock, tried = Clock(monkeypatch, 2, 1), Layout(lambda *asked: asked, 2)
    ways(clock, tried, 2 * TRIALS)
    clock.seconds[1, 2] = 50  # something else has come to run on these cores
    assert ways(clock, tried, 4) == "twww"
    clock.seconds[1, 2] = 1
    found = ways(clock, tried, AGAIN)
    assert found == "w" * found.index("t") + "t" * (AGAIN - found.index("t"))


def test_one_thread_is_not_tried_apart(monkeypatch):
    clock = Clock(monkeypatch, 2, 1)
    clock.seconds[1, 1] = 1
    loaded = []
    tried = Layout(lambda *asked: loaded.append(asked) or asked, 1)
    ways(clock, tried, 9)
    assert loaded == [(1, 1)]


def test_one_of_a_process_has_threads(monkeypatch):
    clock = Clock(monkeypatch, 2, 1)
    first, second = (Layout(lambda *asked: asked, 2) for _ in range(2))
    assert "t" in ways(clock, first, 9)
    assert ways(clock, second, 9) == "w" * 9
    del first
    assert "t" in ways(clock, second, 9)


def test_while_one_is_busy_another_is_done_by_workers(monkeypatch):
    clock, tried = Clock(monkeypatch, 2, 1), Layout(lambda *asked: asked, 2)
    ways(clock, tried, 9)
    inner = tried.alone(10, lambda outer: (outer, tried.alone(10, lambda translator: translator)))
    assert inner == ((1, 2), (2, 1))


def test_where_the_files_are_gone_the_workers_do_it(monkeypatch):
    def load(workers, threads):
        if threads > 1:
            raise RuntimeError("Unable to open file 'model.bin'")
        return workers, threads

    clock = Clock(monkeypatch, 2, 1)
    assert ways(clock, Layout(load, 2), 3 * AGAIN) == "w" * 3 * AGAIN


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_both_say_the_same(babbler, kind):
    translator = load(babbler, engine="ctranslate2", compute_type=kind, threads=2)
    texts = ["the quick brown fox", "jumps over the lazy dog", "Zwölf Boxkämpfer jagen", "a b c d e"]
    together = [one.text for one in translator.translate(texts)]
    for _ in range(TRIALS):
        assert [translator.translate(text).text for text in texts] == together
    assert translator.engine.layout.one is not None
