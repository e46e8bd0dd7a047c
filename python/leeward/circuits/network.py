"""What a schedule is made for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    """Rates and times of a network of racks. By default those of Etalon's testbed (section 4).

    Attributes:
        circuit: Rate of a circuit.
        packet: Rate of a rack's link to the packet switch.
        night: How long circuits take to change.
        week: How long a schedule may be.
        min_day: The shortest day; `0s` if any is worth a night.
    """

    circuit: str = "80Gbps"
    packet: str = "10Gbps"
    night: str = "20us"
    week: str = "2ms"
    min_day: str = "180us"

    def texts(self) -> tuple[str, str, str, str, str]:
        """All of it, in order."""
        return self.circuit, self.packet, self.night, self.week, self.min_day
