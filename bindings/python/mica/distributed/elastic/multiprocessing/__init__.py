"""What a rank tells its launcher."""
