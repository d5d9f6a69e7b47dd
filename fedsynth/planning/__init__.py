"""The price of a job before anything is asked, from public facts alone."""
