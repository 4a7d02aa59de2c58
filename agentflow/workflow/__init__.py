"""The task loop: phases, the gate, the verdict."""
