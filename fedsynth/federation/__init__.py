"""Requests, tasks, clients and the channel through which every private value leaves."""
