"""The names of torch as data: what each is on Mica, and which module defines it."""
