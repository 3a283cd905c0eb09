"""The reader of pickles by explicit rules: machine, opcodes, kinds of arguments, makers of what they allow."""
