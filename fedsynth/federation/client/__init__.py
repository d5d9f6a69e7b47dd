"""The client's half: its data, what it answers, what it keeps of a job."""
