"""Diagrams of graphs: Mermaid, DOT, state charts."""
