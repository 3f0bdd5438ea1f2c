// What the library threw, as the project's typed faults.
#pragma once

#include <exception>

#include "../model/fault.hpp"

namespace tt::on_ttnn {

// The first line of the cause: tt-metal's exceptions say where the check stands, then, after `info:`,
// what is wrong, then a backtrace.
std::string first_line(const std::string& text);

// `running` says that calls of the list may have been made already, so that a lack of memory is no
// longer one that leaves everything as it was.
Fault translate(const std::exception& exception, bool running);

}  // namespace tt::on_ttnn
