"""mica.fx.passes: what walks graphs."""
