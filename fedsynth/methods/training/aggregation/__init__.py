"""How the server moves its weights by what a round of clients' trainings released.

All of it is post-processing of a noisy sum, and free. What changes a client's own steps (FedProx)
is said by a request's settings, and done in the methods' tasks.
"""
