"""Diagrams of graphs: Mermaid, DOT and state charts."""
