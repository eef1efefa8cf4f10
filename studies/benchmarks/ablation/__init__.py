"""Which features of the quasi-Newton solver are worth their code, on problems that were never used to tune it?"""
