"""Promises on real disks: file servers, clients and enforcers in a lab.

| module | role |
| --- | --- |
| `bed` | servers with throttled disks, clients, a controller and enforcers, each a process at its host |
| `layout` | the cluster of the bed, and texts that its programs read; pure functions |
| `parts` | parts of a machine that the bed needs |
| `nfs` | a client of NFSv3 that keeps several calls open |

`server.sh` runs nfs-ganesha at a host, and `uncached.py` keeps its reads out of the page cache.
"""
