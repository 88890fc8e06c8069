"""What must be true of every document at every moment, looked at in a database that is in use: rules, evidence, findings, repairs."""
