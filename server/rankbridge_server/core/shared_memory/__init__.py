"""Memory that a rank shares with callers on its host: files that both read and write."""
