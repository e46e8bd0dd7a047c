"""Repetition of tests that measure times."""

import functools
from collections.abc import Callable
from typing import ParamSpec

ATTEMPTS = 3
"""Attempts at a test of times, rates or windows."""
Arguments = ParamSpec("Arguments")


def repeated(test: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Repeats a test that fails, up to twice.

    It is for tests that measure times, rates and windows: other load makes these worse, never better.
    """

    @functools.wraps(test)
    def attempts(*arguments: Arguments.args, **keywords: Arguments.kwargs) -> None:
        for attempt in range(1, ATTEMPTS):
            try:
                test(*arguments, **keywords)
            except AssertionError as error:
                print(f"attempt {attempt} of {test.__name__}: {error}")
            else:
                return
        test(*arguments, **keywords)

    return attempts
