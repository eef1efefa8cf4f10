"""`python -m rbrl.cli` is `rbrl`."""

if __name__ == "__main__":
    from rbrl.cli import main

    main()
