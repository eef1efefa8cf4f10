"""Tools that every package may use: checks, files, data frames, progress and linear algebra."""
