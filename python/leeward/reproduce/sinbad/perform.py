"""Runs the sweeps that figures of Sinbad need, and makes their rows and pictures."""

from leeward.reproduce.figures import make, runs
from leeward.reproduce.sinbad import FIGURES
from leeward.reproduce.sinbad.sweeps import check_horizon

__all__ = ["FIGURES", "check_horizon", "make", "runs"]
