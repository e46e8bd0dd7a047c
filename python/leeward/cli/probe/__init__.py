"""`leeward probe`: what a network gives, measured by those who use it."""

import typer

from leeward.cli.probe import bottlenecks, calibrate, listen, mesh, path

EXAMPLES = """\b
Examples:
  leeward probe listen                                  on every host; here for a first look
  leeward probe path here 127.0.0.1
  leeward probe mesh --hosts 10.0.0.1,10.0.0.2,10.0.0.3 --out measured.yaml
  leeward probe bottlenecks --hosts 10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4

A host is an address where `leeward probe listen` runs, as every other host knows it, with a port if it is
not 7601. Measurements between two others are ordered from here and sent from the one to the other.
"""

app = typer.Typer(rich_markup_mode=None)
app.command("listen", epilog=listen.EXAMPLES)(listen.listen)
app.command("path", epilog=path.PATH_EXAMPLES)(path.path)
app.command("mesh", epilog=mesh.MESH_EXAMPLES)(mesh.mesh)
app.command("bottlenecks", epilog=bottlenecks.EXAMPLES)(bottlenecks.bottlenecks)
app.command("cross", epilog=path.CROSS_EXAMPLES)(path.cross)
app.command("hops", epilog=mesh.HOPS_EXAMPLES)(mesh.hops)
app.command("steady", epilog=path.STEADY_EXAMPLES)(path.steady)
app.command("calibrate", epilog=calibrate.EXAMPLES)(calibrate.calibrate)


@app.callback(epilog=EXAMPLES)
def probe() -> None:
    """Measure a network by sending packets."""
