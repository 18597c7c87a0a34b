"""Runs over slaves: the hosts of the inventory, their shares of the load, and an agent on each during the run."""
