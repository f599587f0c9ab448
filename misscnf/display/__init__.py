"""What people look at while they wait, and in a notebook: progress, cards."""
