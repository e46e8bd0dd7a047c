"""`leeward device`: profiles of storage devices."""

from leeward.cli import device_import, device_profile
from leeward.cli.groups import Commands

EXAMPLES = """\b
Examples:
  leeward device profile --fio . --dry-run
  leeward device import examples/slo/fio.json --out imported.json
"""

app = Commands()
app.command("import", epilog=device_import.EXAMPLES)(device_import.import_)
app.command(epilog=device_profile.EXAMPLES)(device_profile.profile)


@app.callback(epilog=EXAMPLES)
def device() -> None:
    """Measure storage devices, or import measurements.

    A device file holds the work and the unloaded latency of requests, by kind and size, or the seek times of
    a disk.
    """
