"""Runs the sweeps that figures of Sinbad need, and makes their rows and pictures."""

from leeward_reproduce.figures import make, runs
from leeward_reproduce.sinbad import FIGURES, MAIN
from leeward_reproduce.sinbad.sweeps import check_horizon

__all__ = ["FIGURES", "MAIN", "check_horizon", "make", "runs"]
