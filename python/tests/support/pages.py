"""Pages of the book as scripts: their files and commands, run in a folder of their own.

A page is a sequence of fenced blocks:

* `console` blocks have commands, each after `$ `, and below each the lines that it prints. A command goes on
  in the next line after a backslash, and as long as a quote is open. `...` on a line of its own stands for
  any lines, and `...` within a line for any text or none. What follows three spaces and `#` is a comment.
* A block whose first line is `# NAME` with the name of a file, or that follows a line that ends in
  `` `NAME`: ``, makes that file.
* `python` blocks run after all commands, as one program.

A comment before a block says how to run it: `<!-- server -->` in the background until it listens,
`<!-- exit 1 -->` with this exit code, `<!-- not run: REASON -->` not at all. The folder has a link
`examples`. A page prints port 7600; a server gets a free port.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
PORT = "7600"
TIMEOUT_S = 120
REASONS = (
    "another program",
    "another machine",
    "downloads traces",
    "privileges",
    "takes minutes",
    "goes on until it is stopped",
    "a sketch of options",
    "shown for its form",
)
"""Reasons for which a block may not run."""
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"<!-- (.+?) -->\s*$")
_TITLE = re.compile(r"`([\w.-]+\.\w+)`:\s*$")
_FIRST_LINE = re.compile(r"# ([\w-]+\.(?:yaml|yml|toml|csv))")
_VARYING = (
    (re.compile(r"file:///\S+/"), "file:///"),
    (re.compile(r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?"), "TIME"),
    (re.compile(r"\b(after|in) [\d.]+ (us|ms|s|min)\b"), r"\1 TIME"),
    # The history of a link has a bar for each interval that has passed.
    (re.compile(r"(?<= %) +[\u2581-\u2588]+(?= )"), ""),
)
"""Texts that differ from run to run, and what they are replaced by on both sides."""


class PageError(Exception):
    """A page that cannot be run as a script."""


@dataclass
class Command:
    """A command of a page.

    Attributes:
        text: The command, without its comment.
        shown: Lines that the page shows below it.
        line: Line of the page, from 1.
        code: Expected exit code.
        is_server: True for a command that runs until the end of the page.
    """

    text: str
    shown: list[str]
    line: int
    code: int = 0
    is_server: bool = False


@dataclass
class Page:
    """Files, commands and Python of a page.

    Attributes:
        path: The page.
        steps: Files (name and content) and commands, in order.
        python: Python program.
        skipped: Reason of each block that does not run, with its line.
    """

    path: Path
    steps: list[Command | tuple[str, str]] = field(default_factory=list)
    python: str = ""
    skipped: list[tuple[int, str]] = field(default_factory=list)

    @property
    def commands(self) -> list[Command]:
        """The commands, in order."""
        return [step for step in self.steps if isinstance(step, Command)]


@dataclass(frozen=True)
class Result:
    """Exit code and output of a command; the code of a running server is None."""

    code: int | None
    stdout: str
    stderr: str


def read_page(path: Path) -> Page:
    """Reads a page.

    Raises:
        PageError: A mark is unknown, or a reason is not one of `REASONS`.
    """
    text, page = path.read_text(), Page(path)
    for block in _FENCE.finditer(text):
        before = text[: block.start()]
        line = before.count("\n") + 1
        language, content = block[1], block[2]
        mark = _MARK.search(before)
        title = _TITLE.search(before[: mark.start()] if mark else before)
        mark_text = mark[1] if mark else ""
        if mark_text.startswith("not run: "):
            reason = mark_text.removeprefix("not run: ")
            if not reason.startswith(REASONS):
                raise PageError(f"{path}:{line}: `{reason}` is not a reason that a page may give")
            page.skipped.append((line, reason))
        elif language == "console":
            page.steps += list(_commands(content, line + 1, mark_text))
        elif name := title or _FIRST_LINE.match(content):
            page.steps.append((name[1], content))
        elif language == "python":
            page.python += content
    return page


def _commands(content: str, line: int, mark: str) -> Iterator[Command]:
    """Commands of a console block that begins at a line."""
    lines = content.splitlines()
    code = int(mark.removeprefix("exit ")) if mark.startswith("exit ") else 0
    at = 0
    while at < len(lines):
        if not lines[at].startswith("$ "):
            raise PageError(f"line {line + at}: expected a command after `$ `")
        start, text = at, lines[at][2:]
        while _goes_on(text):
            at += 1
            text += "\n" + lines[at]
        at += 1
        shown = []
        while at < len(lines) and not lines[at].startswith("$ "):
            shown.append(lines[at])
            at += 1
        text = re.sub(r"\s{3,}#.*$", "", text)
        yield Command(text, shown, line + start, code, mark == "server")


def _goes_on(text: str) -> bool:
    """True if the next line belongs to the command."""
    if text.endswith("\\"):
        return True
    try:
        shlex.split(re.sub(r"\s{3,}#.*$", "", text))
    except ValueError:
        return True
    return False


def run_page(page: Page, folder: Path, environment: dict[str, str]) -> list[Result]:
    """Runs the commands of a page in an empty folder, in one shell, and stops its servers.

    Args:
        page: The page.
        folder: The folder.
        environment: Variables, with a PATH that has the command `leeward`.

    Returns:
        A result for each command, and one for the Python program if there is one.
    """
    port = _free_port()
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(REPOSITORY / "examples")
    logs = folder / ".page"
    logs.mkdir()
    script, number = ["servers=", "trap 'kill $servers 2>/dev/null; wait' EXIT"], 0
    for step in page.steps:
        if isinstance(step, tuple):
            name, content = step
            script.append(f"cat > {shlex.quote(name)} <<'END_OF_FILE'\n{content}END_OF_FILE")
            continue
        output = f">.page/{number}.out 2>.page/{number}.err"
        command = step.text.replace(PORT, str(port))
        if step.is_server:
            if " --listen" not in command:
                command += f" --listen 127.0.0.1:{port}"
            wait = f"grep -q listening .page/{number}.out .page/{number}.err || sleep 0.1"
            script.append(
                f'{command} {output} &\nservers="$servers $!"\nfor try in {{1..200}}; do {wait}; done'
            )
        else:
            script.append(f"{{ {command}\n}} {output}\necho $? >.page/{number}.code")
        number += 1
    if page.python:
        (logs / "program.py").write_text(page.python.replace(PORT, str(port)))
        # As a program in the folder, which may import the files of the page.
        program = f"PYTHONPATH=. {shlex.quote(sys.executable)} .page/program.py"
        script.append(f"{program} >.page/{number}.out 2>.page/{number}.err\necho $? >.page/{number}.code")
        number += 1
    (logs / "script").write_text("\n".join(script))
    subprocess.run(
        ["bash", ".page/script"],
        cwd=folder,
        env={"HOME": str(folder), "LEEWARD_CONTROLLER": f"http://127.0.0.1:{port}", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
        check=False,
    )
    return [_result(logs, at, port) for at in range(number)]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _result(logs: Path, number: int, port: int) -> Result:
    def text(kind: str) -> str:
        file = logs / f"{number}.{kind}"
        return file.read_text().replace(str(port), PORT) if file.exists() else ""

    code = text("code").strip()
    return Result(int(code) if code else None, text("out"), text("err"))


def normalize(line: str) -> str:
    """A line without what differs from run to run, and with single spaces."""
    for pattern, replacement in _VARYING:
        line = pattern.sub(replacement, line)
    return " ".join(line.split())


def difference(command: Command, result: Result) -> str | None:
    """Description of the first difference between the shown and the printed output; None without one.

    Without `...`, the page shows all of stdout. Lines of stderr may be left out.
    """
    if result.code is None and not command.is_server:
        return "the command did not end"
    if result.code is not None and result.code != command.code:
        return f"exit code {result.code}, expected {command.code}\n{result.stderr}"
    shown = [normalize(line) for line in command.shown if line.strip()]
    if not shown:
        return None
    printed = [normalize(line) for line in result.stdout.splitlines() if line.strip()]
    extra = [normalize(line) for line in result.stderr.splitlines() if line.strip()]
    if not any("..." in line for line in shown) and not command.is_server:
        missing = [line for line in printed if line not in shown]
        if missing:
            return "printed, but not shown:\n" + "\n".join(missing)
    return _missing(shown, printed, extra)


def _missing(shown: Sequence[str], printed: Sequence[str], extra: Sequence[str]) -> str | None:
    """The first shown line that was not printed in this order on stdout, or at all on stderr."""
    at = 0
    for line in shown:
        if line == "...":
            continue
        pattern = _pattern(line)
        found = next((index for index in range(at, len(printed)) if pattern.match(printed[index])), None)
        if found is not None:
            at = found + 1
        elif not any(pattern.match(one) for one in extra):
            return f"shown, but not printed: {line}\nprinted:\n" + "\n".join([*printed[at:], *extra])
    return None


def _pattern(line: str) -> re.Pattern[str]:
    """A printed line that a shown line stands for. A word `...` may stand for no word."""
    escaped = re.escape(line).replace(r"\ \.\.\.\ ", r"(?:\ .*)?\ ").replace(r"\.\.\.", ".*")
    return re.compile(escaped + r"\Z")


def command_environment() -> dict[str, str]:
    """Variables with which pages run: nothing of the user's but what finds the command and its package."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: os.environ[name] for name in ("PYTHONPATH", "LANG") if name in os.environ}
    return {"PATH": path, **kept}
