"""What operators and timers do: pause, repair, fork, cancel a branch, resume."""
