"""Are the defaults good without tuning?"""
