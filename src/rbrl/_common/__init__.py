"""What every package may use: checks, files, threads, progress, small linear algebra."""
