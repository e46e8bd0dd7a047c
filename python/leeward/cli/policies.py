"""`leeward policies`: every policy there is."""

from leeward import _native
from leeward.cli.output import Format, FormatOption, print_json, print_table

EXAMPLES = """\b
Examples:
  leeward policies                what there is, and where it is from
  leeward policies -o json        with the settings of each, as JSON schema
"""


def policies(output: FormatOption = Format.table) -> None:
    """List the policies, what each does and where it is from."""
    known = _native.policies()
    if output is Format.json:
        print_json(known)
        return
    print_table(
        {"KIND": "left", "POLICY": "left", "WHAT IT DOES": "left", "SETTINGS": "left"},
        [
            (policy["kind"], policy["name"], policy["summary"], ", ".join(policy["settings"]["properties"]))
            for policy in known
        ],
    )
