// Stands in for tt-metal's logger in the driver's own translation units: they log nothing, and a second
// build of spdlog in the program would take the place of the library's.
#pragma once

namespace tt {

enum LogType { LogAlways };

}  // namespace tt

#define log_trace(...) ((void)0)
#define log_debug(...) ((void)0)
#define log_info(...) ((void)0)
#define log_warning(...) ((void)0)
#define log_error(...) ((void)0)
#define log_critical(...) ((void)0)
#define log_fatal(...) ((void)0)
