"""SLO: bounds on tail latency for workloads that share storage and links (Zhu, thesis, 2018).

The cells run in order, in the folder of the sources: in a notebook (VS Code and Jupytext open this file as
one), or as a program.
"""

# %% [markdown]
# # How bursty is a trace?
# The r-b curve has, for each rate of a token bucket,
# the least burst that passes all requests at once (section 3.2).

# %%
from matplotlib import pyplot

from leeward import slo
from leeward.traces import open_trace

trace = open_trace("examples/slo/mail.csv.gz", device="examples/slo/ssd.json")
figure, axes = pyplot.subplots()
for stage in ("network-in", "storage", "network-out"):
    curve = trace.curve(stage)
    buckets = [bucket for bucket in curve["buckets"] if bucket["rate"] > 0]
    rates = [bucket["rate"] / curve["mean_rate"] for bucket in buckets]
    axes.loglog(rates, [bucket["burst"] / curve["largest"] for bucket in buckets], label=stage)
axes.set_xlabel("rate, in mean rates of the trace")
axes.set_ylabel("least burst, in largest requests")
axes.legend()
figure

# %% [markdown]
# # Bounds
# Six mail volumes and a backup share a disk.
# The method `dnc` assumes that all bursts meet; `snc` uses that they seldom do.

# %%
workloads = slo.load("examples/slo/w.yaml", "examples/slo/cluster.yaml")
bounds = {
    method: [one["bound_s"] for one in workloads.bound(method)["workloads"] if one["bound_s"] is not None]
    for method in ("dnc", "snc")
}
for method, values in bounds.items():
    print(f"{method}: at most {1e3 * max(values):.1f} ms")

# %%
figure, axes = pyplot.subplots()
for at, (method, values) in enumerate(bounds.items()):
    places = [number + 0.4 * at for number in range(len(values))]
    axes.bar(places, [1e3 * value for value in values], 0.4, label=method)
axes.axhline(55, color="black", linewidth=0.8)
axes.set_xlabel("workload")
axes.set_ylabel("bound on latency, ms")
axes.legend()
figure
