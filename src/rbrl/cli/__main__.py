"""`python -m rbrl.cli` is `rbrl`."""

from rbrl.cli import main

if __name__ == "__main__":
    main()
