"""``python -m crowdveil``: the command line."""

from crowdveil.cli.app import main

main()
