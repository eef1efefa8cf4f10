"""What the page of a comparison shows: its parts, and what it says."""
