"""Rates and times of a network with circuits."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    """Rates and times of a network of racks. The defaults describe Etalon's testbed (section 4).

    Attributes:
        circuit: Rate of a circuit.
        packet: Rate of a rack's link to the packet switch.
        night: Time that circuits take to change.
        week: Maximum length of a schedule.
        min_day: Minimum length of a day; `0s` for no minimum.
    """

    circuit: str = "80Gbps"
    packet: str = "10Gbps"
    night: str = "20us"
    week: str = "2ms"
    min_day: str = "180us"

    def texts(self) -> tuple[str, str, str, str, str]:
        """The fields, in order."""
        return self.circuit, self.packet, self.night, self.week, self.min_day
