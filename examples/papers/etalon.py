"""Etalon: packets and TCP over a network whose circuits change (Mukerjee et al., NSDI 2020).

The cells run in order, in the folder of the sources: in a notebook (VS Code and Jupytext open this file as
one), or as a program.
"""

# %% [markdown]
# # Schedules of circuits
# A demand has the bytes from each rack to each.
# A rack has one circuit at a time, and none works while they change.

# %%
from leeward import circuits, packets

demand = circuits.read("examples/circuits/demand.csv")
weeks = [circuits.schedule(demand, name) for name in ("solstice", "eclipse", "rotor")]
for week in weeks:
    print(f"{week.scheduler:<9} {len(week.days):2} days serve {week.served:.1%} of the demand")

# %%
circuits.picture(weeks)

# %% [markdown]
# # TCP over circuits
# Queues that grow before a circuit comes keep it busy (section 4.2).
# Here they are beside queues of a fixed length.

# %%
import yaml

with open("examples/circuits/strobe.yaml") as file:
    resized = yaml.safe_load(file)
resized["horizon"] = "40ms"
fixed = {name: value for name, value in resized.items() if name != "resize"}
runs = {"resized": packets.simulate(resized), "fixed": packets.simulate(fixed)}
for name, run in runs.items():
    used, rate = run.utilization(0, 1), packets.summary(run)["throughput_bps"]
    print(f"{name:<8} circuits are used {used:.1%}, {rate / 1e9:.2f} Gb/s")

# %%
packets.picture(packets.read(resized), runs["resized"])
