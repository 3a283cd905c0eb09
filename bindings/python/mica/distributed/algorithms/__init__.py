"""What programs do with collectives; so far the communication hooks of DistributedDataParallel."""
