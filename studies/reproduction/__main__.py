"""`python -m studies.reproduction`: the paper's tables, figures and claims beside ours."""

from studies.reproduction.command import main

if __name__ == "__main__":
    main()
