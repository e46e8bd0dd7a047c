"""Entry point of the `leeward` command: separate, so that an interrupt during loading ends it quietly."""


def main() -> None:
    """Loads and runs the command, and ends the process."""
    try:
        from leeward.cli import main as run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()
