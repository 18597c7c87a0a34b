"""Random faults in real runs, checked by a function that numbers every request it gets.

    python -m tests.nemesis --seed 7 --runs 10 --minutes 5 [--slaves]

The same seed gives the same plans, faults and moments. With --slaves the runs are over the lab, which must be up and
deployed; else on this machine. Prints a line for each run; ends with 1 if a run broke a promise, and keeps its folder:

- every request that the function got is one row of samples.csv, or the run does not pass and says what it lost;
- no request is there twice, and tree, journal, table and summary agree;
- what was killed can be reported, the same way each time, and state files can be read;
- the command ends in time and without a traceback, nothing stays running, and the next run works.

A step of the clock is not among the faults: no namespace of Linux has a wall clock of its own.
"""
