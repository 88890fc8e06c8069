"""Documents: mutations, transitions, policies, rules, migration."""
