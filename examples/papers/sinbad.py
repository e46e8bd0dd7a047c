"""Sinbad: copies of blocks go where the links have room (Chowdhury et al., SIGCOMM 2013).

The cells run in order, in the folder of the sources: in a notebook (VS Code and Jupytext open this file as
one), or as a program.
"""

# %% [markdown]
# # The scenario
# A small cluster, the load as the paper measured it, and policies for the copies of blocks.
# Each policy sees the same arrivals.

# %%
import leeward

scenario = leeward.read_scenario("examples/scenarios/first.yaml")
scenario

# %% [markdown]
# # One run
# The paper's measure is the time from the request for a block to its last copy,
# as a ratio to the default placement of HDFS (section 7.1).

# %%
uniform, sinbad = leeward.simulate(scenario, ["uniform", "sinbad"])
factor = sinbad.compare(uniform)["full_blocks"]["factor"]
print(f"full blocks are written {factor:.2f} times as fast as under uniform placement")
sinbad

# %%
sinbad.plot(uniform)

# %% [markdown]
# # Several seeds
# Another seed has other arrivals, so the ratio has an interval. Late telemetry costs a part of the gain.

# %%
from leeward import sweep

settings = {"telemetry.delay": ["0s", "5s"]}
cells = sweep.run(scenario, ["uniform", "sinbad"], seeds=[1, 2, 3], settings=settings)
means = sweep.summarize(cells).to_pylist()
for row in means:
    if row["policy"] == "sinbad" and row["quantity"] == "full_block_write_s.mean":
        delay, low, high = row["set.telemetry.delay"], row["ratio_low"], row["ratio_high"]
        print(f"delay {delay}: {row['ratio']:.2f} times as fast, interval {low:.2f} to {high:.2f}")

# %% [markdown]
# # Another policy
# A function of a request and of what the ledger believes competes under the same constraints.


# %%
def coolest(request, view):
    """The rate that is left into each host, as its score."""
    return view.residual_in


(own,) = leeward.simulate(scenario, coolest)
own.plot(uniform)
