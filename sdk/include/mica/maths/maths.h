/* All scalar functions of this folder, for a backend that computes programs. */
#ifndef MICA_MATHS_MATHS_H_
#define MICA_MATHS_MATHS_H_

#include <mica/maths/airy.h>
#include <mica/maths/bessel.h>
#include <mica/maths/digamma.h>
#include <mica/maths/functions.h>
#include <mica/maths/gamma.h>
#include <mica/maths/modified_bessel.h>
#include <mica/maths/normal.h>
#include <mica/maths/orthogonal.h>
#include <mica/maths/parts.h>
#include <mica/maths/zeta.h>

#endif /* MICA_MATHS_MATHS_H_ */
