"""The paper beside rbrl: its plans, its published tables, what was computed of them, and what both say."""
