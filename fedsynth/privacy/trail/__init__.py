"""What is written down of every release: ledger, chain, certificate."""
