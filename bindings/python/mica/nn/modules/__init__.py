"""The module classes, by theme."""
