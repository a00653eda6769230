"""`python -m astrago_trainer` is the command `astrago`."""

from astrago_trainer.cli.main import run

run()
