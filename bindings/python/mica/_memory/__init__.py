"""Memory that several processes map, and how tensors travel between them."""
