// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import CLibev
import Glibc

// How many descriptors this process may have, and has. Any thread.

/// Raises the soft limit of descriptors (RLIMIT_NOFILE) to the hard one, where the system allows, and returns the limit that holds.
///
/// The soft limit is 1024 by default only for select(2), whose sets end there; nothing here uses it.
@discardableResult
package func raiseDescriptorLimit() -> Int {
  var limit = rlimit()
  guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return descriptorLimit() }
  if limit.rlim_cur < limit.rlim_max {
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
  return descriptorLimit()
}

/// The limit of descriptors that holds now: no descriptor has this number or a greater one.
package func descriptorLimit() -> Int {
  var limit = rlimit()
  // It cannot fail for a resource that exists; 1024 is what every Linux grants.
  guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
  return Int(clamping: limit.rlim_cur)
}

/// How many connections a server may have at most: 64 descriptors are kept for listeners, loops, files and the log.
package func connectionLimit() -> Int { max(descriptorLimit() - 64, 1) }

/// How many descriptors this process has open; nil without /proc.
package func openDescriptors() -> Int? {
  guard let directory = opendir("/proc/thread-self/fd") else { return nil }
  defer { closedir(directory) }
  var count = 0
  while let entry = readdir(directory) {
    if entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
  }
  return count - 1  // the directory's own
}
