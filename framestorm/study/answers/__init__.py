"""Raw files of the runs into figures, and figures into answers: everything that summary.json holds."""
