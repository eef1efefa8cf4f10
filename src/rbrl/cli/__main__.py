"""Entry point of `python -m rbrl.cli`."""

if __name__ == "__main__":
    from rbrl.cli import main

    main()
