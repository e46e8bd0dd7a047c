"""Etalon's evaluation (*Overcoming End-to-End Challenges in Reconfigurable Datacenter Networks*).

Sections 4 (sixteen flows from rack to rack under a fixed round of circuits), 5 (rings of big flows, and small
ones between all racks, under schedules by demand) and 6 (files of HDFS), in the packet simulator with the
testbed's configuration.
"""
