"""Commands to deciders, views, inbox, projections, verification."""
