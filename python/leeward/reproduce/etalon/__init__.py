"""Etalon's evaluation (*Adapting TCP for Reconfigurable Datacenter Networks*), on the packet plant.

Sections 4 (sixteen flows from rack to rack under a fixed round of circuits) and 5 (rings of big flows, and
small ones between all racks, under schedules made of demand), with the configuration of the testbed.
"""
