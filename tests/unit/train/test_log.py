"""The log is only added to; what was gone back on and what was torn does not count."""

import torch  # noqa: F401

from headwise.train.log import Log, read_log


def test_lines_are_added_and_told(tmp_path):
    told = []
    for step in (1, 2):
        Log(tmp_path / "log.jsonl", told.append).write("step", step=step, text="ü\n")
    events = read_log(tmp_path / "log.jsonl")
    assert [(e["event"], e["step"], e["text"]) for e in events] == [("step", 1, "ü\n"), ("step", 2, "ü\n")]
    assert told == events


def test_torn_and_gone_back_on(tmp_path):
    file = tmp_path / "log.jsonl"
    log = Log(file, lambda event: None)
    for step in (1, 2, 3):
        log.write("step", step=step)
    with open(file, "a") as torn:
        torn.write('{"event": "step", "st')
    log = Log(file, lambda event: None)
    log.write("resume", step=2)
    log.write("step", step=3)
    assert [(e["event"], e["step"]) for e in read_log(file)] == [("step", 1), ("step", 2), ("resume", 2), ("step", 3)]
