// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import Glibc
import Testing

@testable import Loop

@Suite struct DescriptorLimitTests {
  @Test func the_soft_limit_is_raised_to_the_hard_one() {
    raiseDescriptorLimit()
    var limit = rlimit()
    #expect(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    #expect(limit.rlim_cur == limit.rlim_max)
    #expect(descriptorLimit() == Int(clamping: limit.rlim_max))
    #expect(connectionLimit() == descriptorLimit() - 64)
  }

  @Test func open_descriptors_are_counted() throws {
    try withPrivateDescriptors {
      let before = try #require(openDescriptors())
      let opened = (0..<5).map { _ in dup(0) }
      #expect(openDescriptors() == before + 5)
      for descriptor in opened { close(descriptor) }
      #expect(openDescriptors() == before)
    }
  }
}
