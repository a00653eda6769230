"""The pure heart: what a user asks for, what it becomes, and who decided each line of it.

Nothing in here reads a file, a clock, the environment or a random number; import-linter holds it to that.
"""
