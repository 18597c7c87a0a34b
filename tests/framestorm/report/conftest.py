"""Runs made up by hand are those of the results' tests."""

from tests.framestorm.results.conftest import fake_run, slave_lost, three_users

__all__ = ["fake_run", "slave_lost", "three_users"]
