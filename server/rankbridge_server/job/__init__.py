"""What lives in the user's processes, and what looks at these from beside them."""
