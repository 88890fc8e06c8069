"""The Postgres driver: any number of processes on one database, rows guarded by tenant."""
