"""Front ends: what people write becomes a graph. The front ends do not know one another."""
