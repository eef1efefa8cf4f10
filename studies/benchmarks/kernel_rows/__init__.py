"""Time, memory and accuracy of exact kernel models by the number of rows."""
