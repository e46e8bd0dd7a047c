"""Runs the sweeps that figures of Hotspots need, and makes their rows and pictures."""

from leeward_reproduce.figures import make, runs
from leeward_reproduce.hotspots import FIGURES, MAIN
from leeward_reproduce.hotspots.sweeps import check_horizon

__all__ = ["FIGURES", "MAIN", "check_horizon", "make", "runs"]
