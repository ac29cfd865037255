"""The demo's dates: the same for the same seed, in one part only, and each says what it stands beside."""

import re
from datetime import date, datetime

import pytest

from headwise.demo import dates
from headwise.demo.dates import FORMS, pairs, part_of, written, year_in_words

DAYS = [date(1900, 1, 1), date(1987, 3, 3), date(2000, 2, 29), date(2012, 12, 12), date(2099, 12, 31)]
STRPTIME = {  # the forms that the standard library reads
    "{day} {month} {year}": "%d %B %Y",
    "{month} {day}, {year}": "%B %d, %Y",
    "{weekday}, {day} {month} {year}": "%A, %d %B %Y",
    "{weekday}, {month} {day}, {year}": "%A, %B %d, %Y",
    "{wday} {day} {mon} {year}": "%a %d %b %Y",
    "{mon} {day} {year}": "%b %d %Y",
    "{day}-{mon}-{year}": "%d-%b-%Y",
    "{year}, {month} {day}": "%Y, %B %d",
    "{year}/{mm}/{dd}": "%Y/%m/%d",
    "{dd}.{mm}.{year}": "%d.%m.%Y",
}


def test_they_are_the_same_for_the_same_seed():
    assert pairs("dev", 50, 1) == pairs("dev", 50, 1)
    assert pairs("dev", 50, 1) != pairs("dev", 50, 2)


def test_no_date_is_in_two_parts():
    seen = {part: {iso for _, iso in pairs(part, 2000, 3)} for part in ("train", "dev", "test")}
    for part, isos in seen.items():
        assert {part_of(date.fromisoformat(iso)) for iso in isos} == {part}
    assert not seen["train"] & seen["test"]
    assert not seen["train"] & seen["dev"]
    assert not seen["dev"] & seen["test"]


def test_no_text_stands_for_two_dates():
    assert len({source for source, _ in pairs("train", 2000, 1)}) == 2000
    every = [(written(day, form).lower(), day) for day in DAYS for form in FORMS]
    assert len({text for text, _ in every}) == len(set(every))


@pytest.mark.parametrize("day", DAYS, ids=str)
@pytest.mark.parametrize("form", STRPTIME)
def test_the_standard_library_reads_them_back(form, day):
    text = written(day, form)
    assert datetime.strptime(text, STRPTIME[form]).date() == day
    if "{w" in form:
        assert text.startswith(day.strftime("%a"))


@pytest.mark.parametrize("day", DAYS, ids=str)
@pytest.mark.parametrize("form", [form for form in FORMS if "{nth}" in form])
def test_so_it_does_without_the_endings_of_numbers(form, day):
    plain = re.sub(r"(?<=\d)(st|nd|rd|th)|the|of|,", " ", written(day, form)).split()
    weekday = "%A " if "{weekday}" in form else ""
    orders = ("%d %B %Y", "%B %d %Y")
    order = orders[form.index("{nth}") > form.index("{month}")]
    assert datetime.strptime(" ".join(plain), weekday + order).date() == day


def test_endings_of_numbers():
    said = [dates.nth(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 30, 31)]
    assert said == ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "23rd", "30th", "31st"]


def test_words():
    day = date(1987, 3, 3)
    assert written(day, "{month} the {ordinal}, {words}") == "March the third, nineteen eighty-seven"
    assert written(day, "{day}. {monat} {year}") == "3. März 1987"
    assert written(day, "le {day} {mois} {year}") == "le 3 mars 1987"
    assert written(day, "{day} de {mes} de {year}") == "3 de marzo de 1987"
    ordinals = [dates.ordinal(n) for n in range(1, 32)]
    assert ordinals[7:13] == ["eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth"]
    assert ordinals[19:] == [
        "twentieth", "twenty-first", "twenty-second", "twenty-third", "twenty-fourth", "twenty-fifth", "twenty-sixth",
        "twenty-seventh", "twenty-eighth", "twenty-ninth", "thirtieth", "thirty-first",
    ]  # fmt: skip
    years = {
        1900: "nineteen hundred",
        1904: "nineteen oh four",
        1910: "nineteen ten",
        2000: "two thousand",
        2009: "two thousand and nine",
        2010: "twenty ten",
        2031: "twenty thirty-one",
    }
    assert {year: year_in_words(year) for year in years} == years
    assert len({year_in_words(year) for year in range(1900, 2100)}) == 200
