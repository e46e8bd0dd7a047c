"""`leeward hdfs`: Leeward inside a NameNode. One file for each command."""

from leeward.cli.groups import group
from leeward.cli.hdfs import check

EXAMPLES = """\b
Examples:
  leeward hdfs check
  leeward hdfs check --namenode http://namenode:9870 --controller https://leeward:7600
  leeward explain --block blk_1073741825 --namenode http://namenode:9870
"""

app = group(check)


@app.callback(epilog=EXAMPLES)
def hdfs() -> None:
    """Check Leeward's policy inside a NameNode of HDFS.

    The state of the NameNode and of the policy comes from the servlet /jmx of its web interface. `leeward
    explain --block` shows where the policy placed a block, and why.
    """
