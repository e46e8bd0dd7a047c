"""`leeward policies`: every registered policy."""

from leeward import placement
from leeward.cli.csv_columns import COLUMNS
from leeward.cli.output import Format, FormatOption, print_data, print_table

EXAMPLES = """\b
Examples:
  leeward policies                all policies and their sources
  leeward policies -o json        with the settings of each, as a JSON schema
"""


def policies(output: FormatOption = Format.table) -> None:
    """List all policies.

    Shows the summary, the source and the names of the settings of each policy. In options, settings follow
    the name of the policy after colons: sinbad:remote_racks=2:interval=1s.
    """
    entries = placement.policies()
    rows = [entry | {"settings": list(entry["settings"].get("properties", {}))} for entry in entries]
    if print_data(output, entries, rows, COLUMNS["policies"]):
        return
    print_table(
        ("POLICY", "FOR", "WHAT IT DOES", "FROM", "SETTINGS"),
        "<<<<<",
        [
            (
                policy["name"],
                policy["kind"],
                policy["summary"],
                policy["source"],
                ", ".join(policy["settings"].get("properties", {})),
            )
            for policy in entries
        ],
    )
