"""Operations over TCP: figures 11 to 14, 19 to 23, table 1 and incidents, in the simulator of operations.

The figures of the request simulator have no congestion control. Here the same operations cross the same racks
packet by packet, and their rows stand beside the others, with the words *over TCP*.
"""
