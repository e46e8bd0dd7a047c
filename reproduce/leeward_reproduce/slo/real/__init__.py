"""Promises on real disks: file servers, clients and enforcers in a lab, beside the simulator.

| module | role |
| --- | --- |
| `bed` | servers with throttled disks, clients, a controller and enforcers, each a process at its host |
| `layout` | the cluster of the bed, and texts that its programs read; pure functions |
| `parts` | parts of a machine that the bed needs |
| `nfs` | a client of NFSv3 that keeps several calls open |
| `cases` | conditions of runs: workloads, machines, and policies that serve them |
| `chapter3`, `chapter4`, `chapter5` | the cases of the figures of each chapter |
| `traffic` | requests of workloads |
| `disks` | device files of throttled disks |
| `scenario` | the files of a case under a seed, which the simulator and the enforcers read |
| `simulator` | a scenario in the request simulator |
| `run` | a scenario on the bed, and checks that it counts |
| `calibration` | latencies of single requests, and the check that disks are as fast as scenarios assume |
| `measures` | latencies of a run |
| `bench` | runs of scenarios on beds, which a folder keeps |
| `overhead` | requests with and without the storage enforcer |
| `quantities` | quantities of runs, and rows that several figures have |
| `figures` | rows of figures |
| `perform` | figures by name |

`server.sh` runs nfs-ganesha at a host, and `uncached.py` keeps its reads out of the page cache.
"""
