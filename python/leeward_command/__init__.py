"""Entry point of the `leeward` command: a package apart, to end quietly when interrupted while it loads."""


def main() -> None:
    """Loads and runs the command, and ends the process."""
    try:
        from leeward.cli import main as run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()
