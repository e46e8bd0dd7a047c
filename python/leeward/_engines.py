"""Names of the engines that analyses of telemetry run on, apart from the engines, which take long to load."""

from enum import StrEnum


class EngineName(StrEnum):
    """An engine by name."""

    DUCKDB = "duckdb"
    SPARK = "spark"
