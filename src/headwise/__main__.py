"""python -m headwise"""

from headwise.cli.main import run

run()
