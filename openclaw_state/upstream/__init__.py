"""Sessions adopted from other programs: their links and the monitor that follows them."""
