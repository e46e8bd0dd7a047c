"""Hotspots: hot links of a datacenter, their causes, and placement that avoids them.

The paper is "Datacenter network hotspots".

The cells run in order, in the folder of the sources: in a notebook (VS Code and Jupytext open this file as
one), or as a program.
"""

# %% [markdown]
# # Two days of telemetry
# Any table with a time, a link and a load will do: a data frame, or the path of a file.

# %%
from pyarrow import parquet

import leeward
from leeward.hotspots import analyze
from leeward.telemetry import read

cluster = leeward.Cluster("examples/clusters/fabric.yaml")
telemetry = parquet.read_table("examples/telemetry/fabric.parquet")
analysis = analyze(read(cluster, telemetry))
extent = analysis.extent
print(f"{extent.hot:,} of {extent.intervals:,} link intervals are hot")

# %% [markdown]
# # Where, since when, why
# A link is hot in an interval of five minutes if it carries more than 75 % of its capacity (section 3.1).

# %%
for place in analysis.hot_places.to_pylist()[:4]:
    print(place)

# %%
analysis.plot()

# %% [markdown]
# # Tasks that avoid hot racks
# The same tasks under a scheduler that sees no network,
# and under one that balances processors and uplinks (section 5.1).
# Eight hours of the day take less time than all of it.

# %%
with open("examples/scenarios/cell.yaml") as file:
    text = file.read().replace("horizon: 1d", "horizon: 8h")
scenario = leeward.Scenario.from_text(text, "examples/scenarios", name="cell")
borg, utp = leeward.simulate(scenario, ["borg", "utp"])
for run in (borg, utp):
    hot = run.cell()["hot_tors"].to_numpy().mean()
    print(f"{run.policy:<5} {hot:.2f} hot racks on average")
utp

# %%
utp.plot(borg)
