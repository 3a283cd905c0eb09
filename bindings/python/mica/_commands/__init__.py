"""The subcommands of `mica`, a module each; mica/__main__.py says what one must have."""
