"""Reproductions: figures of papers, measured again on Leeward's simulator and compared with the papers.

The package is a plug-in: it adds the command `reproduce` to `leeward`.

>>> from leeward_reproduce.perform import reproduce
>>> rows = reproduce("sinbad", ["12"])
>>> rows[0].figure, round(rows[0].ours, 2)
('12', 2.0)
"""
