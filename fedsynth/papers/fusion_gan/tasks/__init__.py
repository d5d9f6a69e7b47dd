"""The client half: networks trained at their clients, perhaps by DP-SGD."""
