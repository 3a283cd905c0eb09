"""How calls reach function modes and subclasses that see them first."""
