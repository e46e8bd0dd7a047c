"""Engines of analyses: DuckDB in this process, or Spark for data beyond one machine.

Analyses are expressions in Ibis, written once. Both engines give equal numbers, because sums are of integers,
ratios are of integers below 2^53, and every table shown is sorted.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ibis
import pyarrow

from leeward._engines import EngineName
from leeward.errors import InputError

_HADOOP = (r"([*?\[\]{}\\])", r"\\\1")
"""Characters with a meaning in paths of Spark, and their escapes."""


@dataclass(frozen=True)
class Engine:
    """A running engine.

    Attributes:
        name: Name of the engine.
        connection: Ibis' connection to it.
    """

    name: EngineName
    connection: Any

    @staticmethod
    def duckdb(memory: str | None = None, threads: int | None = None) -> "Engine":
        """DuckDB in this process.

        Args:
            memory: Greatest memory, such as `4GB`; by default four fifths of the machine's.
            threads: Greatest number of threads; by default the number of processors.
        """
        settings: dict[str, Any] = {"memory_limit": memory, "threads": threads}
        options = {name: value for name, value in settings.items() if value is not None}
        # Analyses sort where order matters; keeping that of the input would cost memory.
        connection = ibis.duckdb.connect(**options, preserve_insertion_order=False)
        connection.raw_sql("SET TimeZone = 'UTC'")
        return Engine(EngineName.DUCKDB, connection)

    @staticmethod
    def spark(session: Any = None) -> "Engine":
        """Spark: an existing session, or a new one on this machine.

        Raises:
            InputError: PySpark is not installed, or has no Java to run on.
        """
        if session is None:
            session = _session()
        return Engine(EngineName.SPARK, ibis.pyspark.connect(session))

    @staticmethod
    def of(name: EngineName) -> "Engine":
        """The engine of this name with its defaults."""
        return Engine.spark() if name is EngineName.SPARK else Engine.duckdb()

    def table(self, data: pyarrow.Table) -> ibis.Table:
        """A small table as a table of the engine."""
        if self.name is EngineName.DUCKDB:
            return ibis.memtable(data)
        # Ibis would send the rows through processes of Python, one by one.
        return self._view(self.connection._session.createDataFrame(data))

    def parquet(self, paths: Sequence[str | os.PathLike[str]]) -> ibis.Table:
        """Parquet files of the same columns as one table, still unread."""
        names = [self._literally(path) for path in paths]
        if self.name is EngineName.DUCKDB:
            return self.connection.read_parquet(names)
        tables = [self.connection.read_parquet(name) for name in names]
        return ibis.union(*tables) if len(tables) > 1 else tables[0]

    def csv(
        self,
        paths: Sequence[str | os.PathLike[str]],
        delimiter: str,
        columns: Sequence[str],
        compressed: bool = False,
    ) -> ibis.Table:
        """CSV files with the same header, all plain or all gzip, as one table of texts, still unread.

        Raises:
            InputError: The name of a file does not show its compression to Spark.
        """
        names = [self._literally(path) for path in paths]
        options: dict[str, Any] = {"header": True, "quote": '"', "escape": '"'}
        if self.name is EngineName.DUCKDB:
            types = dict.fromkeys(columns, "VARCHAR")
            options |= {"delim": delimiter, "columns": types, "auto_detect": False}
            return self.connection.read_csv(names, compression="gzip" if compressed else "none", **options)
        for path in paths:
            if str(path).endswith(".gz") is not compressed:
                problem = (
                    "this is gzip, but its name does not end in"
                    if compressed
                    else "this is not gzip, but its name ends in"
                )
                message = f"{problem} `.gz`, by which Spark recognizes gzip"
                raise InputError.about(str(path), message)
        # Lines longer or shorter than the header are rejected, whichever columns are read.
        options |= {"sep": delimiter, "mode": "FAILFAST", "columnPruning": False}
        reader = self.connection._session.read.options(**options)
        tables = [self._view(reader.csv(name)) for name in names]
        return ibis.union(*tables) if len(tables) > 1 else tables[0]

    def _view(self, frame: Any) -> ibis.Table:
        """A data frame of Spark as a table."""
        name = ibis.util.gen_name("read")
        frame.createOrReplaceTempView(name)
        return self.connection.table(name)

    def _literally(self, path: str | os.PathLike[str]) -> str:
        """A path that an engine does not read as a pattern."""
        pattern, instead = (r"([*?[])", r"[\1]") if self.name is EngineName.DUCKDB else _HADOOP
        return re.sub(pattern, instead, str(Path(path)))

    def keep(self, table: ibis.Table) -> ibis.Table:
        """The same table, computed once for all later reads."""
        if self.name is EngineName.DUCKDB:
            # Dropped with the connection.
            return self.connection.create_table(ibis.util.gen_name("kept"), table, temp=True)
        return table.cache()

    def arrow(self, table: ibis.Table) -> pyarrow.Table:
        """Rows of a table, in memory."""
        return self.connection.to_pyarrow(table)


def _session() -> Any:
    """A Spark session on this machine's processors.

    Raises:
        InputError: Spark is not available.
    """
    try:
        from pyspark.errors import PySparkException, PySparkRuntimeError
        from pyspark.sql import SparkSession
    except ImportError:
        error = InputError.about("engine", "`spark`: PySpark is not installed")
        error.add_note("pip install 'leeward[spark]'")
        raise error from None
    try:
        return (
            SparkSession.builder.master("local[*]")
            .appName("leeward")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 1)))
            .getOrCreate()
        )
    except (PySparkException, PySparkRuntimeError, FileNotFoundError) as cause:
        error = InputError.about("engine", f"`spark`: it does not start: {cause}")
        error.add_note("Spark needs a Java runtime, version 17 or later")
        raise error from None
