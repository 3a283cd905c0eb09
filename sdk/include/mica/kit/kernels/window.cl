R"cl(
// A reduction over each window of a tensor's last dimensions: a work-item a window, or W that lie side by side.
//
// SETUP: the (first) window's place and range, the states' init. EACH: loops over the window.
// ELEMENT: the element x0 and its index in the plane. STEP and FINISH: the operator's
// `reduce`, and the stores.
kernel void window(PARAMETERS) {
  const INDEX i = get_global_id(0);
  if (i >= total) return;
  SETUP
  EACH {
    ELEMENT
    STEP
  }
  FINISH
}
)cl"
