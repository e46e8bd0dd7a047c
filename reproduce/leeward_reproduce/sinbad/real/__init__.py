"""Sinbad's experiments on real bytes: a scenario runs in the simulator, and on HDFS in a lab.

The paper ran them on 100 machines of EC2 (section 7.1). Here they are small: twelve DataNodes in four racks
on one machine, blocks of 16 MiB, and links of 100 Mb/s between racks.

| module | role |
| --- | --- |
| `cases` | conditions of runs: arrivals, storage, reports |
| `scenario` | files of the simulator, which the cluster reads as well |
| `pairs` | runs by both policies, simulated and real |
| `quantities` | quantities of the runs under a seed |
| `figures` | figures 6 to 9 and section 7.4, of the same runs |
| `conditions` | figure 11, section 7.6, and reports |
"""
