"""Runs the sweeps that figures of Hotspots need, and makes their rows and pictures."""

from leeward.reproduce.figures import make, runs
from leeward.reproduce.hotspots import FIGURES
from leeward.reproduce.hotspots.sweeps import check_horizon

__all__ = ["FIGURES", "check_horizon", "make", "runs"]
