"""A small real task: dates as people write them, and the same dates as ISO 8601 has them."""

import hashlib
import random
from datetime import date, timedelta
from typing import Literal

Part = Literal["train", "dev", "test"]

FIRST, N_DAYS = date(1900, 1, 1), 73_049  # to the end of 2099
ENGLISH, FRENCH, GERMAN, SPANISH, WEEKDAYS, UNITS, TEENS, TENS = (
    line.split()
    for line in (
        "January February March April May June July August September October November December",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        "zero one two three four five six seven eight nine",
        "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen",
        "twenty thirty forty fifty sixty seventy eighty ninety",
    )
)
ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth"}
ORDINALS |= {"twelve": "twelfth", "twenty": "twentieth", "thirty": "thirtieth"}

FORMS = (
    "{day} {month} {year}",
    "{month} {day}, {year}",
    "the {nth} of {month}, {year}",
    "the {nth} of {month} {year}",
    "{month} the {nth}, {year}",
    "{month} {nth}, {year}",
    "{weekday}, {day} {month} {year}",
    "{weekday}, {month} {day}, {year}",
    "{weekday} the {nth} of {month}, {year}",
    "{wday} {day} {mon} {year}",
    "{mon} {day} {year}",
    "{day}-{mon}-{year}",
    "{year}, {month} {day}",
    "{year}/{mm}/{dd}",
    "{dd}.{mm}.{year}",
    "{day}. {monat} {year}",
    "le {day} {mois} {year}",
    "{day} de {mes} de {year}",
    "the {ordinal} of {month}, {year}",
    "{month} the {ordinal}, {words}",
    "the {ordinal} of {month} {words}",
)


def pairs(part: Part, n: int, seed: int) -> list[tuple[str, str]]:
    """`n` different pairs of a written date and its ISO form; no date is in two parts."""
    draw = random.Random(f"{part} {seed}")
    found: dict[str, str] = {}
    while len(found) < n:
        day = FIRST + timedelta(draw.randrange(N_DAYS))
        if part_of(day) == part:
            found[_cased(written(day, draw.choice(FORMS)), draw)] = day.isoformat()
    return list(found.items())


def part_of(day: date) -> Part:
    """By a hash of the date: nine in ten are learned from."""
    bucket = hashlib.sha256(day.isoformat().encode()).digest()[0] % 20
    return "test" if bucket == 0 else "dev" if bucket == 1 else "train"


def written(day: date, form: str) -> str:
    """A date in one of the forms."""
    month, weekday = day.month - 1, WEEKDAYS[day.weekday()]
    return form.format(
        day=day.day,
        dd=f"{day.day:02}",
        nth=nth(day.day),
        ordinal=ordinal(day.day),
        month=ENGLISH[month],
        mon=ENGLISH[month][:3],
        mm=f"{day.month:02}",
        mois=FRENCH[month],
        monat=GERMAN[month],
        mes=SPANISH[month],
        year=day.year,
        words=year_in_words(day.year),
        weekday=weekday,
        wday=weekday[:3],
    )


def nth(n: int) -> str:
    """1st, 2nd, 3rd, 4th ..."""
    ending = "th" if n in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def cardinal(n: int) -> str:
    """A number below a hundred in words."""
    if n < 20:
        return [*UNITS, *TEENS][n]
    return TENS[n // 10 - 2] + (f"-{UNITS[n % 10]}" if n % 10 else "")


def ordinal(n: int) -> str:
    """first, second, twenty-third ..."""
    before, dash, last = cardinal(n).rpartition("-")
    return before + dash + ORDINALS.get(last, f"{last}th")


def year_in_words(year: int) -> str:
    """As it is said: nineteen eighty-seven, nineteen oh four, two thousand and nine, twenty thirty-one."""
    century, rest = divmod(year, 100)
    if century == 20 and rest < 10:
        return f"two thousand and {UNITS[rest]}" if rest else "two thousand"
    return f"{cardinal(century)} " + ("hundred" if not rest else f"oh {UNITS[rest]}" if rest < 10 else cardinal(rest))


def _cased(text: str, draw: random.Random) -> str:
    """As it is, or in small letters."""
    return draw.choice((text, text, text.lower()))
