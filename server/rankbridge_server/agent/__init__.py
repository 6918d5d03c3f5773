"""Starting the ranks of one host, and seeing them exit. Knows neither torch nor grpc."""
