"""Runs made up by hand are those of the report's tests."""

from tests.framestorm.report.conftest import fake_run, make_jtl, slave_lost, three_users

__all__ = ["fake_run", "make_jtl", "slave_lost", "three_users"]
