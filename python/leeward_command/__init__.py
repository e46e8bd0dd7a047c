"""Entry point of the `leeward` command. It handles interrupts (Ctrl-C) before anything else loads.

At any moment, an interrupt ends the command with code 130 and without a traceback:

* While the command loads, the process ends at once. Extension modules would turn an exception into an
  ImportError, and there is no file to remove yet.
* While the command runs, the handler raises KeyboardInterrupt, so that the command removes its temporary
  files.
* After the command, interrupts are ignored; a second interrupt ends the process at once.
"""

import os
import sys
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
"""Exit code of an interrupted command, as shells report it."""


def main() -> NoReturn:
    """Loads and runs the command, and ends the process."""
    try:
        code = _run()
    except KeyboardInterrupt:
        # The interrupt came before the first handler.
        code = INTERRUPTED
    sys.exit(code)


def _run() -> int:
    # The import of a module has callbacks that would lose an interrupt.
    sys.unraisablehook = _end_if_interrupted
    import atexit
    import signal

    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # The parent wants it so: a shell ignores interrupts for the background jobs of a script.
        from leeward.cli import main as run_command

        run_command()
    code, interrupted = INTERRUPTED, False

    def end_process(_number: int, _frame: FrameType | None) -> NoReturn:
        os._exit(code)

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        import warnings

        nonlocal interrupted
        interrupted = True
        # Libraries warn about work that is cancelled.
        warnings.simplefilter("ignore")
        # Destructors fail on objects whose constructor the interrupt ended.
        sys.unraisablehook = _repeat_lost_interrupt
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, end_process)
    # This is the last function at exit. After it, the interpreter would restore the default action.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    from leeward.cli import main as run_command

    sys.unraisablehook = _repeat_lost_interrupt_or_print
    try:
        signal.signal(signal.SIGINT, interrupt)
        run_command()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        # Libraries may turn the interrupt into another exception.
        if not interrupted:
            raise
    finally:
        # The shutdown may wait for threads of an interrupted command.
        signal.signal(signal.SIGINT, end_process if interrupted else signal.SIG_IGN)
    return INTERRUPTED if interrupted and code else code


def _end_if_interrupted(error: "sys.UnraisableHookArgs") -> None:
    """Ends the process if a callback lost an interrupt while the command loads."""
    if issubclass(error.exc_type, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__unraisablehook__(error)


def _repeat_lost_interrupt_or_print(error: "sys.UnraisableHookArgs") -> None:
    """Prints an exception of a destructor or callback, unless it is a lost interrupt, which is repeated."""
    if issubclass(error.exc_type, KeyboardInterrupt):
        _repeat_lost_interrupt(error)
    else:
        sys.__unraisablehook__(error)


def _repeat_lost_interrupt(error: "sys.UnraisableHookArgs") -> None:
    """Interrupts the command again if a destructor or callback lost the interrupt."""
    if not issubclass(error.exc_type, KeyboardInterrupt):
        return
    import signal
    import threading

    # The delay lets the destructor end first.
    main_thread = threading.main_thread().ident
    again = threading.Timer(0.01, signal.pthread_kill, [main_thread, signal.SIGINT])
    again.daemon = True
    again.start()
