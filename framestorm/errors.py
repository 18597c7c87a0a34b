"""What can go wrong, by what the caller is to do about it: the exit status of run.sh."""


class FramestormError(Exception):
    """The run could not be done; the message says what failed, what was observed and what to do."""

    exit_status = 1


class UsageError(FramestormError):
    """The command line, a property or a criterion is wrong; nothing was started."""

    exit_status = 2
