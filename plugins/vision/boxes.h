// Operators over boxes.
#ifndef MICA_PLUGINS_VISION_BOXES_H_
#define MICA_PLUGINS_VISION_BOXES_H_

#include <mica/plugin.h>

namespace mica::vision {

void RegisterBoxes(const plugin::Registrar& registrar);

}  // namespace mica::vision

#endif  // MICA_PLUGINS_VISION_BOXES_H_
