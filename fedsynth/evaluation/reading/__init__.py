"""How rows are read before they are measured."""
