"""Checkpoints in a folder: files in the format safetensors, and one file that says what lies where."""

from mica.distributed.checkpoint._filesystem_reader import FileSystemReader
from mica.distributed.checkpoint._filesystem_writer import FileSystemWriter, SerializationFormat

__all__ = ["FileSystemReader", "FileSystemWriter", "SerializationFormat"]
