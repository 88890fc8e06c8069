"""The engine: what users hold in their hands. It wires the store and the runtime, and knows which decider is which."""
