"""What rankbridge is measured beside, each in processes of its own."""
