"""`python -m reproduction`: the paper's tables, figures and claims beside ours."""

from reproduction.command import main

main()
