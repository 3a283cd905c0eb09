// Pooling over regions of images.
#ifndef MICA_PLUGINS_VISION_POOLING_H_
#define MICA_PLUGINS_VISION_POOLING_H_

#include <mica/plugin.h>

namespace mica::vision {

void RegisterPooling(const plugin::Registrar& registrar);

}  // namespace mica::vision

#endif  // MICA_PLUGINS_VISION_POOLING_H_
