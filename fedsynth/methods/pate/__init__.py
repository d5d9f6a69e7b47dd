"""PATE: private aggregation of teacher ensembles, with the clients as teachers."""
