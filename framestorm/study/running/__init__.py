"""Points run one after the other, and what has to be there before the first."""
