#!/usr/bin/env python3
"""Writes what zoneinfo says of every zone, for test_zone_file: "WHAT ZONE A B" a line.

Offsets are asked for around every change of 2026 to 2028, instants for local times around it: of a local
time the first instant at which the clocks show it or a later one, found minute by minute.
"""
import datetime
import random
import sys
import zoneinfo

UTC = datetime.timezone.utc
START = int(datetime.datetime(2026, 1, 1, tzinfo=UTC).timestamp())
END = int(datetime.datetime(2028, 12, 1, tzinfo=UTC).timestamp())
SOME = 40  # zones asked for instants, besides those with rare rules
RARE = ["Europe/Berlin", "Africa/Casablanca", "Africa/El_Aaiun", "Asia/Gaza", "Australia/Lord_Howe",
        "America/New_York", "America/Nuuk", "America/Scoresbysund", "Pacific/Chatham", "Europe/Dublin",
        "Asia/Tehran", "Africa/Cairo", "Asia/Kolkata", "Pacific/Apia", "America/Santiago", "Antarctica/Troll"]


def offset(zone, at):
    return int(datetime.datetime.fromtimestamp(at, zone).utcoffset().total_seconds())


def changes(zone):
    step = 6 * 3600
    for at in range(START, END, step):
        if offset(zone, at) == offset(zone, at + step):
            continue
        low, high = at, at + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(zone, middle) == offset(zone, at) else (low, middle)
        yield high


def instant(zone, local, around):
    """The first minute at which the clocks show that time or a later one."""
    for at in range(around - 8 * 3600, around + 8 * 3600, 60):
        if at + offset(zone, at) >= local:
            return at
    raise AssertionError(f"{zone} never shows {local}")


def main():
    seed = 42
    print(f"# seed {seed}", file=sys.stderr)
    names = sorted(zoneinfo.available_timezones() - {"localtime", "Factory"})
    asked = set(RARE) | set(random.Random(seed).sample(names, SOME))
    with open(sys.argv[1], "w", encoding="ascii") as out:
        for name in names:
            zone = zoneinfo.ZoneInfo(name)
            found = list(changes(zone))
            for at in found + [START, END]:
                for near in (at - 1, at, at + 1, at + 86400):
                    print("offset", name, near, offset(zone, near), file=out)
            for at in found if name in asked else []:
                for minutes in range(-180, 181, 45):
                    local = at + offset(zone, at) + minutes * 60
                    print("instant", name, local, instant(zone, local, at), file=out)


main()
