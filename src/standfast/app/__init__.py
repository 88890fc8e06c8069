"""The engine: the entry point of the library. It connects the store and the runtime, and registers every decider."""
