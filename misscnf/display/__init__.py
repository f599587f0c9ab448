"""What people look at: progress while they wait, cards in a notebook, the style of pictures."""
