#include "faults.hpp"

#include <cstdlib>
#include <string_view>

namespace tt::on_ttnn {
namespace {

std::string line_at(const std::string& text, std::size_t from) {
    const std::size_t begin = text.find_first_not_of(" \n\t", from);
    if (begin == std::string::npos) {
        return {};
    }
    return text.substr(begin, text.find('\n', begin) - begin);
}

// The number that follows `label`.
std::uint64_t number_after(const std::string& text, std::string_view label) {
    const std::size_t at = text.find(label);
    return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + label.size(), nullptr, 10);
}

bool says(const std::string& text, std::string_view what) { return text.find(what) != std::string::npos; }

}  // namespace

std::string first_line(const std::string& text) {
    const std::size_t info = text.find("info:\n");
    const std::string cause = info == std::string::npos ? std::string() : line_at(text, info + 6);
    return cause.empty() ? line_at(text, 0) : cause;
}

Fault translate(const std::exception& exception, bool running) {
    if (const auto* own = dynamic_cast<const Fault*>(&exception)) {
        return *own;
    }
    const std::string text = exception.what();
    const std::string cause = first_line(text);
    if (says(text, "Out of Memory")) {
        // "... to allocate {} B DRAM buffer across {} banks, where each bank needs to store {} B, but bank
        // size is {} B (allocated: {} B, free: {} B, largest free block: {} B)": all but the first a bank's.
        Fault fault(running ? FaultKind::Submit : FaultKind::OutOfMemory, cause);
        const std::uint64_t banks = number_after(text, "buffer across ");
        fault.report.requested = number_after(text, "space to allocate ");
        fault.report.free = banks * number_after(text, "free: ");
        fault.report.largest = banks * number_after(text, "largest free block: ");
        return fault;
    }
    if (says(text, "timed out") || says(text, "timeout") || says(text, "TIMEOUT")) {
        return {FaultKind::Timeout, cause};
    }
    if (says(text, "device is not responding") || says(text, "read of 0xffffffff") || says(text, "Device is hung")) {
        return {FaultKind::DeviceLost, cause};
    }
    return {FaultKind::Submit, cause};
}

}  // namespace tt::on_ttnn
