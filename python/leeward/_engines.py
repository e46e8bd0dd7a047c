"""Names of the engines of telemetry analyses, in a module that loads quickly."""

from enum import StrEnum


class EngineName(StrEnum):
    """An engine by name."""

    DUCKDB = "duckdb"
    SPARK = "spark"
