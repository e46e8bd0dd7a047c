"""`leeward slo`: workloads with objectives for tail latency. One file a command."""

import typer

from leeward.cli.slo import curve, model

EXAMPLES = """\b
Examples:
  leeward slo curve examples/slo/mail.csv.gz --device examples/slo/ssd.json
  leeward slo model examples/slo/mail.csv.gz
"""

app = typer.Typer(rich_markup_mode=None)
app.command("curve", epilog=curve.EXAMPLES)(curve.curve)
app.command("model", epilog=model.EXAMPLES)(model.model)


@app.callback(epilog=EXAMPLES)
def slo() -> None:
    """Keep objectives for tail latency, such as 99.9 % within 20 ms.

    A workload is known by a trace of its requests, and a device by its profile.
    """
