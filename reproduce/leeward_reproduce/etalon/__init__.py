"""Etalon's evaluation (*Overcoming End-to-End Challenges in Reconfigurable Datacenter Networks*).

The package reproduces three sections in the packet simulator with the testbed's configuration: section 4
(sixteen flows from rack to rack under a fixed round of circuits), section 5 (rings of big flows, and small
flows between all racks, under schedules by demand), and section 6 (files of HDFS).
"""
