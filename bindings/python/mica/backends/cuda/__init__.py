"""mica.backends.cuda: settings of products of matrices."""

from mica.backends.cuda import matmul as matmul
