"""Choreo: the tasks of an app go where its transfers end first (LaCurts et al., IMC 2013).

The cells run in order, in the folder of the sources: in a notebook (VS Code and Jupytext open this file as
one), or as a program.
"""

# %% [markdown]
# # An app on rented machines
# The machines of the cluster send at different rates. The matrix has the bytes that each task sends to each.

# %%
import numpy

import leeward

cluster = leeward.Cluster("examples/clusters/tenant.yaml")
matrix = numpy.zeros((6, 6))
matrix[0, 1:] = 200e6
matrix[1:, 0] = 50e6
cluster

# %% [markdown]
# # Greedy, exact and random
# The greedy algorithm puts the largest transfers on the fastest paths (section 2.3).
# The exact one proves that no placement ends earlier.

# %%
from matplotlib import pyplot

times = {}
for policy in ("random", "minimum-machines", "choreo", "choreo-exact"):
    decision = leeward.place_tasks(cluster, matrix=matrix, cpus=1, policy=policy, explain=0)
    times[policy] = decision["completion_s"]
    hosts = " ".join(str(task["host"]) for task in decision["tasks"])
    print(f"{policy:<17} {times[policy]:6.2f} s  {hosts}")

# %%
figure, axes = pyplot.subplots()
axes.barh(list(times), list(times.values()))
axes.set_xlabel("forecast end of the last transfer, s")
figure

# %% [markdown]
# # A day of apps
# Apps arrive beside other traffic, and two machines lose most of their rate.
# Running apps are reconsidered each minute (section 2.4).

# %%
scenario = leeward.read_scenario("examples/scenarios/apps.yaml")
random, choreo = leeward.simulate(scenario, ["random", "choreo"])
apps = choreo.compare(random)["apps"]
print(f"apps end {apps['factor']:.2f} times as fast as on random machines")
choreo

# %%
choreo.plot(random)
