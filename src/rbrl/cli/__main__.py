"""`python -m rbrl.cli` is `rbrl`."""

from rbrl.cli import main

main()
