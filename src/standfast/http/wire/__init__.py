"""Problems, options, paging, metrics, webhooks."""
