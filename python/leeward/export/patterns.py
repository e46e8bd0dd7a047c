"""Common subset of Python's patterns and those of Prometheus (RE2), with equal meaning.

Python applies the patterns of map files, and Prometheus applies the patterns of rules. Prometheus rejects a
whole file of rules for one unknown pattern. So this module rejects, and names, all parts outside of the list
below.
"""

import re

ALLOWED = (
    "letters and sets, `|`, ( ), (?: ), (?P<name> ), (?i) at the start, `*`, `+`, `?` and {n,m} up to 1000,"
    r" lazy ones too, \d \w \s \b \A, \t \n \r \x20, and `\` before punctuation"
)
"""Names of the supported parts, in words."""
MOST = 1000
"""Greatest product of nested repetitions."""
_SIGN = r"\\[!-/:-@\[-`{-~]"
_LETTER = rf"\\x[0-9A-Fa-f]{{2}}|\\[dDwWsSafnrtv]|{_SIGN}"
_REPEAT = r"\{\d+(?:,\d*)?\}"
_TOKEN = re.compile(
    rf"(?P<set>\[\^?\]?(?:{_LETTER}|[^\\\[\]]|\[(?!:))*\])"
    r"|(?P<flags>\(\?[ims]+\))"
    r"|(?P<open>\((?:\?(?:P<[A-Za-z0-9_]+>|[ims]*:))?(?!\?))"
    r"|(?P<close>\))"
    # Another `+` would make a repetition possessive.
    rf"|(?P<repeat>{_REPEAT})\??(?!\+)"
    r"|[*+?]\??(?!\+)"
    # Python reads {,3} as a repetition, and RE2 reads it as literal text.
    rf"|{_LETTER}|\\[bBA]|\{{(?!,\d*\}}|\d+(?:,\d*)?\}})|[^\\\[(){{*+?]"
)


def find_unsupported(pattern: str) -> str | None:
    """First part of a pattern that Prometheus lacks or interprets differently; None without such a part.

    Args:
        pattern: A pattern that Python can compile.
    """
    at, product = 0, 1
    # Greatest repetitions within each open group.
    most = [1]
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            return pattern[at : at + 8]
        if token["open"]:
            most.append(1)
        elif token["close"]:
            product = most.pop()
        elif token["repeat"]:
            product *= max(int(number) for number in re.findall(r"\d+", token[0]))
            if product > MOST:
                return token[0]
        else:
            product = 1
        most[-1] = max(most[-1], product)
        at = token.end()
    return None
