"""Evaluation of Choreo: network-aware task placement for cloud applications (IMC 2013).

Apps and networks are drawn by a seed (`workload`), the fluid network runs each placement of an app
(`experiments`), and the times of placements are compared app by app (`comparison`). The error of predictions
of the next hour is measured separately (`predictor`).
"""
