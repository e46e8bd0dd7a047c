"""The JSON schema of map files, which `leeward schema telemetry-map` prints."""

from typing import Any

from leeward.telemetry.units import COUNTERS, RATES, TIMES


def schema() -> dict[str, Any]:
    """The schema of a map file (see `mapping`)."""
    patterns = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": "string"},
        "description": "For each label a pattern (Python's) that must match all of its text.",
    }

    def one_of(words: Any, text: str) -> dict[str, Any]:
        return {"enum": list(words), "description": text}

    def column(units: Any) -> dict[str, Any]:
        return _record(
            {"column": _text("Name of the column."), "unit": one_of(units, "Its unit.")}, ["column"]
        )

    ways = {
        "in": "incoming traffic of a port",
        "out": "outgoing traffic of a port",
        "load": "traffic of a link",
    }
    width = {"enum": [32, 64], "description": "Bits of the counters."}
    reading = {way: column([*RATES, *COUNTERS]) for way in ways}
    properties = {
        "prometheus": _record(
            {
                **{way: _text(f"The selector of a counter of {text}.") for way, text in ways.items()},
                "unit": one_of(COUNTERS, "Unit of the counters; octets by default."),
                "speed": _text("The selector of the capacity of a port."),
                "speed_unit": one_of(RATES, "Unit of the speed; Mbps by default."),
                "counter_bits": width,
            },
            [],
        ),
        "columns": _record(
            {
                "time": column(TIMES),
                "labels": {"type": "array", "items": _text("A column of labels.")},
                **reading,
                "speed": column(RATES),
                "wide": one_of([*RATES, *COUNTERS], "Each column is a link; the unit of all of them."),
                "counter_bits": width,
            },
            [],
        ),
        "links": {
            "type": "array",
            "description": "The first rule whose labels all match counts.",
            "items": _record(
                {
                    "match": patterns,
                    **{
                        way: _text(f"The link that carries {text}: {{label}}, {{group}}, {{group-1}}.")
                        for way, text in ways.items()
                    },
                },
                ["match"],
            ),
        },
        "ignore": {
            "type": "array",
            "items": patterns,
            "description": "Ports that are not links of the cluster.",
        },
        "replica_labels": {
            "type": "array",
            "items": _text("A label by which copies of a series differ, such as `replica`."),
            "description": "Labels of copies: of several series that differ in these alone, one counts.",
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Telemetry map",
        "description": "Links of labels, metrics to query from Prometheus, and meanings of columns.",
        **_record(properties, []),
    }


def _record(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    result = {"type": "object", "properties": properties, "additionalProperties": False}
    return result | ({"required": required} if required else {})


def _text(text: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "description": text}
