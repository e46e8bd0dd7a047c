"""Etalon's files of HDFS with Hadoop itself: TestDFSIO writes over the circuits of a lab.

Scenarios, network and schedules are those of `kernels`, which has a writer of chains in the place of HDFS.
"""
