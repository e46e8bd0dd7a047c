"""Choreo: network-aware task placement for cloud applications (IMC 2013), its evaluation.

Apps and networks are drawn by a seed (`workload`), the fluid network runs every placement of them
(`experiments`), and their times are compared app by app (`comparison`). The error of predictions of the next
hour is measured separately (`predictor`).
"""
