"""Files that people write, in YAML or JSON: read within limits, with the place of every value, into structs that declare a format."""
