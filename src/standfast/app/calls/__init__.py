"""The calls of an engine, by subject, each written once: it answers with a `Reply`.

These are the futures face (`engine.futures`). The blocking and the awaitable face are made from these classes by
`devtools/faces.py`: whatever is public here is public there, with the same parameters and the same words.
"""
