"""mica.utils: data loading and helpers."""
