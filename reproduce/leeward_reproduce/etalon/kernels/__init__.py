"""Etalon's figures on real kernels: each scenario runs in the packet simulator and in the lab."""
