"""The calls of an engine as their callers want them: `blocking` for threads, `awaitable` for coroutines; both are generated."""
