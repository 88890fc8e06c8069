"""Pictures as text. `languages` writes Mermaid and DOT so that no name from outside leaves its label; `charts` draws state machines.

Nothing here knows what is drawn for whom: the machine draws its graphs with `languages`, authors of deciders their states with `charts`.
"""
