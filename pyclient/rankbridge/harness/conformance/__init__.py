"""What a backend does, case by case: scenarios that come with the harness, and a report by operation and dtype."""
