"""An independent judge of fits: objectives and gaps beside what extended precision finds, at any scale."""
