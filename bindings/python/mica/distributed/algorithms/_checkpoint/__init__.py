"""Modules that compute their forward anew in backward."""
