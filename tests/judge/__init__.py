"""An independent judge of fits: objectives and gaps beside what extended precision finds, on random problems of any scale."""
