"""Sinbad's experiments on real bytes: a scenario runs in the simulator, and on HDFS in a lab.

The paper ran them on 100 machines of EC2 (section 7.1). Here they are small: twelve DataNodes in four racks
on one machine, blocks of 16 MiB, and links of 100 Mb/s between racks.
"""
