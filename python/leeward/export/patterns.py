"""What Python's patterns and those of Prometheus (RE2) both have, and mean alike.

Map files are read by Python, rules by Prometheus, which would refuse all of them for one pattern that it does
not know. What is not listed here is refused, by its name.
"""

import re

ALLOWED = (
    "letters and sets, `|`, ( ), (?: ), (?P<name> ), (?i) at the start, `*`, `+`, `?` and {n,m} up to 1000,"
    r" lazy ones too, \d \w \s \b \A, \t \n \r \x20, and `\` before a sign"
)
"""It in words."""
MOST = 1000
"""Of repetitions, also of those within others."""
_SIGN = r"\\[!-/:-@\[-`{-~]"
_LETTER = rf"\\x[0-9A-Fa-f]{{2}}|\\[dDwWsSafnrtv]|{_SIGN}"
_REPEAT = r"\{\d+(?:,\d*)?\}"
_TOKEN = re.compile(
    rf"(?P<set>\[\^?\]?(?:{_LETTER}|[^\\\[\]]|\[(?!:))*\])"
    r"|(?P<flags>\(\?[ims]+\))"
    r"|(?P<open>\((?:\?(?:P<[A-Za-z0-9_]+>|[ims]*:))?(?!\?))"
    r"|(?P<close>\))"
    # With a sign more they would be possessive.
    rf"|(?P<repeat>{_REPEAT})\??(?!\+)"
    r"|[*+?]\??(?!\+)"
    # Python takes {,3} for a repetition, and RE2 for letters.
    rf"|{_LETTER}|\\[bBA]|\{{(?!,\d*\}}|\d+(?:,\d*)?\}})|[^\\\[(){{*+?]"
)


def foreign(pattern: str) -> str | None:
    """The first part of a pattern that Prometheus does not have or reads otherwise; None if there is none.

    Args:
        pattern: One that Python can compile.
    """
    at, repeated = 0, 1
    # How often what is in the groups that are open is repeated in them, at most.
    most = [1]
    while at < len(pattern):
        found = _TOKEN.match(pattern, at)
        if found is None:
            return pattern[at : at + 8]
        if found["open"]:
            most.append(1)
        elif found["close"]:
            repeated = most.pop()
        elif found["repeat"]:
            repeated *= max(int(number) for number in re.findall(r"\d+", found[0]))
            if repeated > MOST:
                return found[0]
        else:
            repeated = 1
        most[-1] = max(most[-1], repeated)
        at = found.end()
    return None
