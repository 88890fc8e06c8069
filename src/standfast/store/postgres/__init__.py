"""The Postgres driver: any number of processes on one database, with row-level security by tenant."""
