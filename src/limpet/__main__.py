"""`python -m limpet`."""

from limpet.cli.main import main

main()
