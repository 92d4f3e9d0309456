// DenormalsOff: flush-to-zero bits of the control register.
#include <stiefel/denormals.hpp>

#include "sdk/kernel/control_register.hpp"

namespace stiefel {

DenormalsOff::DenormalsOff() : before_(control()) { set_control(before_ | zero_bits); }

DenormalsOff::~DenormalsOff() { set_zero_bits(before_); }

}  // namespace stiefel
