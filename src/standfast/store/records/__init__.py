"""The records that cross the ports."""
