"""Choreo: network-aware task placement for cloud applications (IMC 2013), its evaluation.

Apps and networks are drawn by a seed (`world`), every placement of them is carried out on the fluid network
(`experiments`), and what each takes is compared app by app (`comparison`). How well the bytes of the next
hour can be predicted is measured apart from that (`predictor`).
"""
