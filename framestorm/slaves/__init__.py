"""Runs over slaves: who they are, their shares of the load, and an eye on each while JMeter drives them."""
