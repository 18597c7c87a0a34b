"""The real OpenFaaS on this machine: its parts built, started, watched and stopped; our provider below its gateway."""
