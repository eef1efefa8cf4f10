"""Can the probabilities be trusted, and what do they cost?"""
