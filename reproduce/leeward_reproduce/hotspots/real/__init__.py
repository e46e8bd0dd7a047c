"""CCP on real bytes: chunks on racks with uneven uplinks, in the simulator and on HDFS in a lab.

The paper piloted CCP in a cluster of Google's (section 5.2). Here it is small: twelve DataNodes in six racks
on one machine, whose uplinks differ threefold and whose disks do not.
"""
