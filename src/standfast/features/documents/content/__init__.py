"""Views and reads of documents."""
