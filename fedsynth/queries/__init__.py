"""What may be asked of clients, below every method: fits, counts, tables, estimates."""
