"""What synthetic rows are worth: fidelity and utility against real rows."""
