"""What torchrun's programs import of its launcher; docs/concepts/distributed.md says what launches ranks here."""
