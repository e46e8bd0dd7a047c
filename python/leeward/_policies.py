"""Policies in arguments: registered ones by name, and policies of the user, as objects or `module:name`."""

import copy
import functools
import hashlib
import importlib
import inspect
import marshal
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from leeward.errors import InputError

Started = tuple[Callable[..., Any] | None, Callable[..., Any] | None, str | None, str | None]
"""Functions of a policy for one run: `place` and `place_batch`; interval of batches, and policy for moves."""
_TEXT = re.compile(
    r"(?P<module>[A-Za-z_][\w.]*):(?P<name>[A-Za-z_][\w.]*)(?P<settings>(?::[A-Za-z_]\w*=[^:]*)*)"
)
_METHODS = ("place", "place_batch")
_FORM = "expected a function of a request and a view, or an object or class with `place` or `place_batch`"


@runtime_checkable
class HasPlace(Protocol):
    """An object that places one request."""

    def place(self, request: Any, view: Any) -> Any:
        """Hosts, scores of all hosts, or None."""


@runtime_checkable
class HasPlaceBatch(Protocol):
    """An object that places several requests together."""

    def place_batch(self, requests: Any, view: Any) -> Any:
        """A row for each request: hosts, or scores of all hosts; None for a declined request."""


@dataclass(frozen=True)
class OwnPolicy:
    """A policy of the user with its settings; made by `own`.

    Attributes:
        policy: A function, a class or an object.
        settings: Names and values of its settings.
        label: Name in results.
        interval: Time for which blocks wait for others, to be placed together; None to place each at once.
        moves: Registered policy that moves running tasks; None for tasks that stay.
    """

    policy: Any
    settings: tuple[tuple[str, Any], ...]
    label: str
    interval: str | None = None
    moves: str | None = None

    def start(self, seed: int) -> Started:
        """Functions of the policy for a run, with its own instance of a class or an object.

        Args:
            seed: Seed of the run. A class gets it if it has a parameter `seed`.
        """
        policy, settings = self.policy, dict(self.settings)
        if isinstance(policy, type):
            if "seed" in inspect.signature(policy).parameters:
                settings.setdefault("seed", seed)
            policy = policy(**settings)
        else:
            # Runs are in several threads, and must not share state. A plain function has none.
            policy = copy.deepcopy(policy)
            if not isinstance(policy, HasPlace | HasPlaceBatch):
                function = functools.partial(policy, **settings) if settings else policy
                return function, None, None, self.moves
        place, place_batch = (getattr(policy, method, None) for method in _METHODS)
        return place, place_batch, self.interval, self.moves

    @property
    def digest(self) -> str:
        """Digest of its code and settings: of the file with its source, or of the code if there is no file.

        Modules that its file imports do not count.
        """
        policy = self.policy.func if isinstance(self.policy, functools.partial) else self.policy
        code = policy if isinstance(policy, type) or inspect.isroutine(policy) else type(policy)
        parts = [_source(code), repr(self.settings), str(self.interval), str(self.moves)]
        if code is not policy:
            parts.append(repr(vars(policy)) if hasattr(policy, "__dict__") else repr(policy))
        if inspect.isfunction(policy):
            parts.append(repr(inspect.getclosurevars(policy).nonlocals))
        if policy is not self.policy:
            parts.append(repr((self.policy.args, self.policy.keywords)))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _source(code: Any) -> str:
    """Text of the file with a function or a class; without a file, its own source or its compiled code."""
    try:
        if (path := inspect.getsourcefile(code)) and Path(path).is_file():
            return Path(path).read_text(encoding="utf-8", errors="replace")
        return inspect.getsource(code)
    except (OSError, TypeError):
        functions = vars(code).values() if isinstance(code, type) else [code]
        compiled = [marshal.dumps(one.__code__) for one in functions if inspect.isfunction(one)]
        return repr((getattr(code, "__qualname__", ""), compiled))


Policy = str | OwnPolicy | Callable[..., Any] | HasPlace | HasPlaceBatch
"""A policy as an argument: a registered one with settings (`sinbad:remote_racks=2`), or the user's own."""
Policies = Iterable[Policy] | Policy


@dataclass(frozen=True)
class Chosen:
    """Policies of an argument.

    Attributes:
        labels: Name of each in results.
        own: The user's own policies among them, by name.
    """

    labels: list[str]
    own: dict[str, OwnPolicy]

    @property
    def starts(self) -> dict[str, Callable[[int], Started]]:
        """The function that starts each of the user's own policies."""
        return {label: policy.start for label, policy in self.own.items()}

    @property
    def registered(self) -> list[str]:
        """The policies that are not the user's own."""
        return [label for label in self.labels if label not in self.own]


def own(
    policy: Any,
    name: str | None = None,
    *,
    interval: str | None = None,
    moves: str | None = None,
    **settings: Any,
) -> OwnPolicy:
    """Gives a policy of your own settings, or another name.

    Args:
        policy: A function of a request and a view; or a class or an object with `place(request, view)`,
            `place_batch(requests, view)`, or both. Each run has its own instance of a class, and its own copy
            of an object.
        name: Name in results; by default that of the function or class, with the settings.
        interval: For `place_batch`, time for which blocks wait for others, such as `100ms`. By default, each
            block is placed at once, alone.
        moves: Registered policy that moves running tasks out of hot racks, such as `utp`; by default tasks
            stay.
        settings: Further arguments of the function, or of the class.

    Raises:
        InputError: The object is not a policy, or has no such setting.
    """
    return _own(policy, name, settings, "policies", interval, moves)


def _own(
    policy: Any,
    name: str | None,
    settings: Mapping[str, Any],
    argument: str,
    interval: str | None = None,
    moves: str | None = None,
) -> OwnPolicy:
    """See `own`; `argument` is the name in errors."""
    plain = str(getattr(policy, "__name__", None) or type(policy).__name__).strip("<>")
    is_class = isinstance(policy, type)
    has_method = any(callable(getattr(policy, method, None)) for method in _METHODS)
    if not has_method and (is_class or not callable(policy)):
        raise InputError.about(argument, f"`{plain}`: {_FORM}")
    if has_method and not is_class:
        if settings:
            message = f"`{plain}`: an object has its settings already; expected a class or a function"
            raise InputError.about(argument, message)
    else:
        _check_settings(policy, plain, settings, argument)
    if interval is not None and not callable(getattr(policy, "place_batch", None)):
        raise InputError.about(argument, f"`{plain}`: without `place_batch`, an interval has no effect")
    label = name or ":".join([plain, *(f"{key}={value}" for key, value in settings.items())])
    # A label is one word of a list, and part of a line.
    label = label.replace("\n", " ").replace(",", ";").strip()
    return OwnPolicy(policy, tuple(settings.items()), label, interval, moves)


def _check_settings(policy: Any, name: str, settings: Mapping[str, Any], argument: str) -> None:
    """Checks that a function or a class takes these settings.

    Raises:
        InputError: It does not.
    """
    try:
        signature = inspect.signature(policy)
    except (TypeError, ValueError):
        # Functions in C may have no signature.
        return
    is_class = isinstance(policy, type)
    # A class gets the seed of the run.
    seed = {"seed": 0} if is_class and "seed" in signature.parameters else {}
    try:
        signature.bind(*(() if is_class else (None, None)), **{**seed, **settings})
    except TypeError as error:
        takes = "its settings" if is_class else "a request, a view and settings"
        raise InputError.about(argument, f"`{name}`: {error}; expected {takes}") from None


def choose(policies: Policies, argument: str = "policies") -> Chosen:
    """Reads policies of an argument.

    Raises:
        InputError: A module or an object does not exist, or is not a policy.
    """
    is_one = isinstance(policies, str | OwnPolicy | HasPlace | HasPlaceBatch) or callable(policies)
    listed = [policies] if is_one else [*cast(Iterable[Any], policies)]
    chosen = Chosen([], {})
    for policy in listed:
        found = _read(policy, argument)
        label = found if isinstance(found, str) else found.label
        if isinstance(found, OwnPolicy):
            if label in chosen.labels:
                message = f"`{label}` is given twice; `own(..., name=...)` gives one of them another name"
                raise InputError.about(argument, message)
            chosen.own[label] = found
        chosen.labels.append(label)
    return chosen


def choose_one(policy: Policy, argument: str = "policy") -> tuple[str, Callable[[int], Started] | None]:
    """Name of the policy of an argument, and the function that starts it if it is the user's own.

    Args:
        policy: The policy.
        argument: Name of the argument, for errors.

    Raises:
        InputError: A module or an object does not exist, or is not a policy.
    """
    found = _read(policy, argument)
    return (found, None) if isinstance(found, str) else (found.label, found.start)


def _read(policy: Policy, argument: str) -> str | OwnPolicy:
    if isinstance(policy, OwnPolicy):
        return policy
    if not isinstance(policy, str):
        return _own(policy, None, {}, argument)
    match = _TEXT.fullmatch(policy.strip())
    if match is None:
        return policy
    import yaml

    pairs = (pair.partition("=") for pair in match["settings"].split(":")[1:])
    settings = {key: yaml.safe_load(value) for key, _, value in pairs}
    return _own(_load(match["module"], match["name"], argument), policy.strip(), settings, argument)


def _load(module: str, name: str, argument: str) -> Any:
    """An object of a module, which may be in the current folder.

    Raises:
        InputError: The module does not exist, or has no such object.
    """
    text = f"`{module}:{name}`"
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not _is_part(error.name, module):
            raise
        # Commands do not look into the current folder, as `python -m` does.
        if (folder := os.getcwd()) in sys.path:
            raise InputError.about(argument, f"{text}: there is no module `{module}`") from None
        sys.path.insert(0, folder)
        return _load(module, name, argument)
    try:
        return functools.reduce(getattr, name.split("."), loaded)
    except AttributeError:
        raise InputError.about(argument, f"{text}: `{module}` has no `{name}`") from None


def _is_part(missing: str | None, module: str) -> bool:
    """True if a missing module is this one, or a package that has it."""
    return missing is not None and (module == missing or module.startswith(f"{missing}."))
