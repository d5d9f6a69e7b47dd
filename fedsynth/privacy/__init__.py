"""Everything an auditor reads: units, clipping, noise, accounting, ledger, certificate."""
