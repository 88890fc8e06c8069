"""Administration: dead letters, reports, seals, restore, alerts."""
