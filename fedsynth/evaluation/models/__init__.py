"""Models that evaluations train: learners, trials, students."""
