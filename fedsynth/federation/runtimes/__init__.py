"""What carries requests to clients and answers back: one contract, whatever lies between."""
