"""How far a training is and how well it does: numbers out of its log lines, or out of what it reports itself.

Nothing here reads a file or a clock. A `Picker` is given the bytes of one log as they come and gives back points and
progress; `status` makes the same out of the Trainer's status contract; a `Curve` keeps a series in bounded memory.
"""
