"""Names of the engines that analyses of telemetry run on, for whom the engines themselves would load too slowly."""

from enum import StrEnum


class EngineName(StrEnum):
    """An engine by name."""

    DUCKDB = "duckdb"
    SPARK = "spark"
