"""Notification channels, templates and delivery."""
