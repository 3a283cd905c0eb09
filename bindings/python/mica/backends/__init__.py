"""mica.backends: how devices with several ways to compute choose among them, as torch.backends.

The switches are attributes, process-wide, and reach the kernels of every backend (<mica/settings.h>).
"""

from mica.backends import cuda as cuda, cudnn as cudnn
